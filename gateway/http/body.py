"""Reads the body of a request, within its limits."""

import asyncio
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect, Request

from gateway.config import GatewaySettings
from gateway.http.failing import TOO_LARGE, TOO_SLOW
from gateway.http.leaving import ClientLeftError
from services.runtime.errors import InvalidArgumentError

ModelT = TypeVar("ModelT", bound=BaseModel)


async def read_json(request: Request, kind: type[ModelT], settings: GatewaySettings) -> ModelT:
    """Return the body as what it is meant to be.

    Raises:
        InvalidArgumentError: it is too large, too slow, no JSON, or a field of it is wrong.
        ClientLeftError: the client went away while it was sending.
    """
    try:
        async with asyncio.timeout(settings.http_body_timeout_s):
            content = await _read(request, settings.max_body_bytes)
    except TimeoutError:
        slow = InvalidArgumentError(
            "body", f"did not come within {settings.http_body_timeout_s:g} s; send it faster"
        )
        slow.cause = TOO_SLOW
        raise slow from None
    try:
        return kind.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise InvalidArgumentError(field, first["msg"]) from None


async def _read(request: Request, max_bytes: int) -> bytes:
    if request.headers.get("content-encoding", "identity") != "identity":
        raise InvalidArgumentError(
            "content-encoding", "compressed bodies are not taken; send it as it is"
        )
    content = bytearray()
    try:
        async for chunk in request.stream():
            content += chunk
            if len(content) > max_bytes:
                raise too_large(max_bytes)
    except ClientDisconnect:
        raise ClientLeftError from None
    return bytes(content)


def too_large(max_bytes: int) -> InvalidArgumentError:
    """Return the refusal of a body that is too large."""
    error = InvalidArgumentError("body", f"is larger than {max_bytes:,} bytes; send less")
    error.cause = TOO_LARGE
    return error
