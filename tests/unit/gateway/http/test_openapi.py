"""Holds the OpenAPI document to the endpoints, and to its specification."""

from collections.abc import Iterator
from typing import Any, cast

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from gateway.http.app import OPERATIONS, PAGES, make_app
from gateway.http.front import Front
from gateway.http.operation import EVENTS
from tests.requirements import requirement
from tests.unit.gateway.http.asgi import ask

NO_FRONT = cast(Front, None)


async def served() -> dict[str, Any]:
    """Return the document as a client gets it."""
    answered = await ask(make_app(NO_FRONT), "GET", "/openapi.json")
    return cast(dict[str, Any], answered.json)


def routes() -> set[tuple[str, str]]:
    """Return the method and the path of every route that the application has."""
    served = make_app(NO_FRONT).paths.served
    return {(method, path) for path, by in served.items() if path not in PAGES for method in by}


def references(value: Any) -> Iterator[str]:
    """Yield every schema that a part of the document refers to."""
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"].rpartition("/")[2]
        for each in value.values():
            yield from references(each)
    elif isinstance(value, list):
        for each in value:
            yield from references(each)


@requirement("http:document-is-true")
async def test_the_document_is_valid() -> None:
    OpenAPIV31SpecValidator(await served()).validate()


@requirement("http:document-is-true")
async def test_the_document_has_the_routes_and_no_other() -> None:
    paths = (await served())["paths"]

    assert {(method.upper(), path) for path, found in paths.items() for method in found} == routes()


@requirement("http:document-is-true")
async def test_a_wrong_method_is_told_all_of_the_right_ones() -> None:
    answered = await ask(make_app(NO_FRONT), "PUT", "/v1/runs/1")

    assert answered.status == 405
    assert set(answered.headers["allow"].split(", ")) == {"DELETE", "GET", "HEAD"}


@requirement("http:document-is-true")
async def test_what_can_be_asked_next_is_there() -> None:
    paths = (await served())["paths"]
    operations = {each["operationId"]: each for path in paths.values() for each in path.values()}

    links = operations["startRun"]["responses"]["202"]["links"]

    assert set(links) == {"getRun", "watchRun", "cancelRun"}
    for link in links.values():
        names = {each["name"] for each in operations[link["operationId"]]["parameters"]}
        assert set(link["parameters"]) == {"run_id"} <= names


@requirement("http:document-is-true")
async def test_each_event_of_a_stream_is_described() -> None:
    paths = (await served())["paths"]
    answer = paths["/v1/chat/completions"]["post"]["responses"]["200"]

    done, data = answer["content"]["text/event-stream"]["schema"]["properties"]["data"]["anyOf"]

    assert done == {"const": "[DONE]"}
    kinds = {each["$ref"].rpartition("/")[2] for each in data["contentSchema"]["anyOf"]}
    assert kinds == {"Chunk", "ErrorBody"}


@requirement("http:document-is-true")
async def test_every_schema_that_is_referred_to_is_there_and_no_other() -> None:
    document = await served()

    assert set(references(document)) == set(document["components"]["schemas"])


@requirement("http:document-is-true")
async def test_every_field_of_a_request_and_an_answer_is_described() -> None:
    schemas = (await served())["components"]["schemas"]

    assert "messages" in schemas["ChatRequest"]["properties"]
    assert schemas["ChatRequest"]["additionalProperties"] is False
    assert (
        "`auto` lets sixhop choose" in schemas["ChatRequest"]["properties"]["model"]["description"]
    )
    assert set(schemas["ErrorDetails"]["required"]) >= {"reason", "hop", "remaining_ms"}


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.name)
def test_an_endpoint_says_what_it_answers(operation: Any) -> None:
    assert operation.summary
    assert all(answer.description for answer in operation.answers)
    assert all(
        answer.kind is not None for answer in operation.answers if answer.media_type == EVENTS
    )
    assert len({each.name for each in OPERATIONS}) == len(OPERATIONS)
