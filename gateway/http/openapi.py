"""Writes the OpenAPI document, from the endpoints as they are served."""

import re
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from importlib.metadata import version
from typing import Any

import orjson
from pydantic import TypeAdapter
from starlette.requests import Request
from starlette.responses import Response

from gateway.http.failing import ErrorBody
from gateway.http.operation import EVENTS, JSON, Answer, Operation, Parameter

TITLE = "sixhop"
_REQUEST_ID = {"x-request-id": "Names the request, as it came or as it was made here."}
_RETRY_AFTER = {"retry-after": "When to come back, seconds."}
_SHOULD_RETRY = {"x-should-retry": "Whether OpenAI's clients may repeat the request by themselves."}
_COMES_BACK = (429, 503)
_REFERENCE = re.compile(r'"\$ref":"#/components/schemas/([^"]+)"')


def document(operations: Sequence[Operation]) -> dict[str, Any]:
    """Return the document of these endpoints, as OpenAPI 3.1."""
    schemas = _Schemas(operations)
    paths: dict[str, dict[str, Any]] = {}
    for each in operations:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": TITLE,
            "version": version("sixhop"),
            "summary": "Asks agents that answer in time, or say truly why they cannot.",
            "description": "The paths of OpenAI are served for OpenAI's clients. Every error has "
            "one shape, before a stream has begun by its HTTP status and afterwards as its last "
            "event, and names its reason, the hop and the milliseconds that were left.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas.shared,
            "securitySchemes": {
                "key": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A key of the tenant; where no keys are configured the door "
                    "takes requests without one.",
                }
            },
        },
        "security": [{}, {"key": []}],
    }


def serve_document(operations: Sequence[Operation]) -> Operation:
    """Return the endpoint that serves the document of these endpoints, and of itself."""

    async def serve(request: Request) -> Response:
        """Give the document."""
        return Response(content, media_type=JSON)

    own = Operation(
        method="GET",
        path="/openapi.json",
        serve=serve,
        name="getOpenApi",
        tag="door",
        summary="Get this document",
        answers=[Answer(description="The document, as OpenAPI 3.1.", kind=dict[str, Any])],
    )
    content = orjson.dumps(document([*operations, own]))
    return own


class _Schemas:
    """Holds the schema of every type that the endpoints name."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        wanted: dict[tuple[Any, Any], TypeAdapter[Any]] = {}
        for kind, mode in _kinds(operations):
            wanted[(id(kind), mode)] = TypeAdapter(kind)
        found, shared = TypeAdapter.json_schemas(
            [(name, mode, adapter) for (name, mode), adapter in wanted.items()],
            ref_template="#/components/schemas/{model}",
        )
        self._found: Mapping[Any, Any] = found
        self.shared = _used(list(found.values()), shared.get("$defs", {}))

    def read(self, kind: Any) -> dict[str, Any]:
        """Return the schema of what is read."""
        return dict(self._found[(id(kind), "validation")])

    def written(self, kind: Any) -> dict[str, Any]:
        """Return the schema of what is written."""
        return dict(self._found[(id(kind), "serialization")])


def _used(schemas: Any, shared: Mapping[str, Any]) -> dict[str, Any]:
    """Return the shared schemas that others refer to: some are left out of where they belong."""
    used: dict[str, Any] = {}
    wanted = _REFERENCE.findall(orjson.dumps(schemas).decode())
    while wanted:
        name = wanted.pop()
        if name not in used:
            used[name] = shared[name]
            wanted += _REFERENCE.findall(orjson.dumps(shared[name]).decode())
    return dict(sorted(used.items()))


def _kinds(operations: Iterable[Operation]) -> Iterable[tuple[Any, Any]]:
    yield ErrorBody, "serialization"
    yield str, "serialization"
    for each in operations:
        if each.body is not None:
            yield each.body, "validation"
        for parameter in each.parameters:
            yield parameter.kind, "validation"
        for answer in each.answers:
            if answer.kind is not None:
                yield answer.kind, "serialization"


def _operation(each: Operation, schemas: _Schemas) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": each.name,
        "tags": [each.tag],
        "summary": each.summary,
        "parameters": [_parameter(parameter, schemas) for parameter in each.parameters],
        "responses": _responses(each, schemas),
    }
    if each.description:
        described["description"] = each.description
    if each.body is not None:
        content = {JSON: {"schema": schemas.read(each.body)}}
        described["requestBody"] = {"required": True, "content": content}
    return described


def _parameter(parameter: Parameter, schemas: _Schemas) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": parameter.where,
        "required": parameter.required or parameter.where == "path",
        "description": parameter.description,
        "schema": schemas.read(parameter.kind),
    }


def _responses(each: Operation, schemas: _Schemas) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    for answer in each.answers:
        found = responses.setdefault(
            str(answer.status), {"description": answer.description, "headers": {}}
        )
        found["headers"] |= _headers({**_REQUEST_ID, **answer.headers})
        if answer.status != HTTPStatus.NO_CONTENT:
            content = found.setdefault("content", {})
            content[answer.media_type] = _content(answer, schemas)
        if answer.links:
            found["links"] = {
                name: {"operationId": name, "parameters": dict(parameters)}
                for name, parameters in answer.links.items()
            }
    for status in sorted({*each.errors, 500}):
        told = {**_REQUEST_ID, **_SHOULD_RETRY, **(_RETRY_AFTER if status in _COMES_BACK else {})}
        responses.setdefault(
            str(status),
            {
                "description": HTTPStatus(status).phrase,
                "headers": _headers(told),
                "content": {JSON: {"schema": schemas.written(ErrorBody)}},
            },
        )
    return responses


def _content(answer: Answer, schemas: _Schemas) -> dict[str, Any]:
    if answer.kind is None:
        return {}
    schema = schemas.written(answer.kind)
    return {"schema": _event(answer, schema, schemas) if answer.media_type == EVENTS else schema}


def _event(answer: Answer, schema: Any, schemas: _Schemas) -> dict[str, Any]:
    """Return what each event of a stream is, in the words that OpenAPI 3.2 has for it."""
    said = {"anyOf": [schema, schemas.written(ErrorBody)]}
    data = {"type": "string", "contentMediaType": JSON, "contentSchema": said}
    return {
        "type": "object",
        "description": "Each event of the stream. One that holds an error is the last.",
        "required": ["data"],
        "properties": {"data": {"anyOf": [{"const": answer.end}, data]} if answer.end else data},
    }


def _headers(told: Mapping[str, str]) -> dict[str, Any]:
    return {
        name: {"description": meaning, "schema": {"type": "string"}}
        for name, meaning in told.items()
    }
