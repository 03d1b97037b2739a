"""Lets a provider fail in every way, and expects one typed error each time."""

import asyncio
from contextlib import suppress

import pytest

from services.model.backend import Provider
from services.runtime.call import CallLimits
from services.runtime.errors import (
    BulkheadFullError,
    Code,
    DependencyError,
    DependencyFailedError,
    SixhopError,
)
from tests.integration.model.calls import KEY, PROMPT, Answer, calling
from tests.requirements import requirement

FAULTS = [
    ("truncate", Code.ABORTED, "TRUNCATED", "truncated"),
    ("done-without-finish", Code.ABORTED, "TRUNCATED", "truncated"),
    ("reset", Code.ABORTED, "CONNECTION_LOST", "connection_lost"),
    ("close-mid-chunk", Code.ABORTED, "CONNECTION_LOST", "connection_lost"),
    ("malformed", Code.ABORTED, "PROTOCOL_ERROR", "bad_json"),
    ("in-band-error", Code.ABORTED, "PROVIDER_ERROR", "provider_error"),
    ("event-error", Code.ABORTED, "PROVIDER_ERROR", "provider_error"),
    ("no-choices", Code.ABORTED, "PROVIDER_ERROR", "provider_error"),
    ("content-filter", Code.ABORTED, "CONTENT_FILTERED", "content_filter"),
    (
        "overloaded",
        Code.RESOURCE_EXHAUSTED,
        "PROVIDER_OVERLOADED",
        "insufficient_system_resource",
    ),
]
REFUSALS = [
    ("html", Code.ABORTED, "PROTOCOL_ERROR", "not_a_stream"),
    ("json", Code.ABORTED, "PROTOCOL_ERROR", "not_a_stream"),
    ("400", Code.ABORTED, "PROVIDER_REFUSED", "request_refused"),
    ("json-error", Code.RESOURCE_EXHAUSTED, "PROVIDER_RATE_LIMITED", "rate_limit"),
    ("400-policy", Code.ABORTED, "CONTENT_FILTERED", "content_filter"),
    ("403", Code.ABORTED, "PROVIDER_KEY_REFUSED", "key_refused"),
    ("400-context", Code.ABORTED, "CONTEXT_LENGTH", "context_length"),
    ("401", Code.ABORTED, "PROVIDER_KEY_REFUSED", "key_refused"),
    ("402", Code.ABORTED, "PROVIDER_NO_BALANCE", "no_balance"),
    ("404", Code.ABORTED, "PROVIDER_MODEL_UNKNOWN", "model_unknown"),
    ("429", Code.RESOURCE_EXHAUSTED, "PROVIDER_RATE_LIMITED", "rate_limit"),
    ("500", Code.ABORTED, "PROVIDER_ERROR", "provider_error"),
    ("503", Code.ABORTED, "PROVIDER_ERROR", "provider_error"),
    ("redirect", Code.ABORTED, "PROTOCOL_ERROR", "redirect"),
]
SILENCES = [
    ("silent", "step_timeout"),
    ("slow-headers", "step_timeout"),
    ("slow-first-chunk", "step_timeout"),
    ("keep-alive-forever", "step_timeout"),
    ("slow-first-chunk?keep_alive_interval_s=0.02", "step_timeout"),
    ("stall", "read_timeout"),
    ("keep-alive-forever?after_chunks=3", "read_timeout"),
]


def facts(error: SixhopError) -> tuple[Code, str, str]:
    assert isinstance(error, DependencyError)
    assert error.origin is not None
    assert error.origin.hop == "llm"
    assert KEY not in error.message
    assert PROMPT.messages[0].content not in error.message
    return error.code, error.origin.reason, error.cause


@requirement("model:provider-faults-are-typed")
@pytest.mark.parametrize(("behaviour", "code", "reason", "cause"), FAULTS)
async def test_a_stream_that_breaks_is_an_error_after_what_came_before(
    behaviour: str, code: Code, reason: str, cause: str
) -> None:
    answer = Answer()

    async with calling(behaviour) as caller:
        with pytest.raises(SixhopError) as caught:
            await caller.ask(into=answer)
        await caller.provider.log.wait_for(lambda log: log.idle())

    assert facts(caught.value) == (code, reason, cause)
    assert answer.text.startswith("The provider of")
    assert answer.finish is None


@requirement("model:provider-faults-are-typed")
@pytest.mark.parametrize(("behaviour", "code", "reason", "cause"), REFUSALS)
async def test_a_refusal_is_an_error_that_says_what_to_correct(
    behaviour: str, code: Code, reason: str, cause: str
) -> None:
    async with calling(behaviour) as caller:
        with pytest.raises(SixhopError) as caught:
            await caller.ask()

    assert facts(caught.value) == (code, reason, cause)


@requirement("model:provider-faults-are-typed")
@pytest.mark.parametrize(
    ("behaviour", "retry_after_s"), [("429", 7.0), ("503", 3.0), ("500", None)]
)
async def test_the_time_to_come_back_is_the_providers(
    behaviour: str, retry_after_s: float | None
) -> None:
    async with calling(behaviour) as caller:
        with pytest.raises(SixhopError) as caught:
            await caller.ask()

    assert caught.value.retry_after_s == retry_after_s


@requirement("model:provider-faults-are-typed")
async def test_what_is_no_stream_is_quoted() -> None:
    async with calling("html") as caller:
        with pytest.raises(DependencyFailedError, match="Welcome to the portal"):
            await caller.ask()


@requirement("model:provider-silence-is-bounded")
@pytest.mark.parametrize(("behaviour", "cause"), SILENCES)
async def test_silence_ends_by_its_limit_and_comments_do_not_extend_it(
    behaviour: str, cause: str
) -> None:
    limits = CallLimits(step_timeout_s=0.3, read_timeout_s=0.3)

    async with calling(behaviour, limits=limits) as caller:
        with pytest.raises(DependencyFailedError) as caught:
            await caller.ask()
        record = await caller.provider.log.wait_for(lambda log: log.closed(1))

    assert facts(caught.value) == (Code.ABORTED, "NO_ANSWER", cause)
    assert record.ended == "client_closed"


@requirement("model:provider-faults-are-typed")
async def test_a_refused_connection_is_told_as_unreachable() -> None:
    async with calling("normal") as caller:
        port = caller.provider.port
    settings = Provider(base_url=f"http://127.0.0.1:{port}/v1", model="any", api_key=KEY)

    async with calling("normal", settings=settings) as caller:
        with pytest.raises(SixhopError) as caught:
            await caller.ask()

    assert facts(caught.value) == (Code.ABORTED, "UNREACHABLE", "refused")


@requirement("model:provider-faults-are-typed")
@pytest.mark.parametrize(
    ("scheme", "reason", "cause"),
    [("http", "PROTOCOL_ERROR", "bad_http"), ("https", "UNREACHABLE", "tls")],
)
async def test_a_peer_that_speaks_something_else_is_told_as_such(
    scheme: str, reason: str, cause: str
) -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"220 mail.example.com ESMTP\r\n\r\n")
        with suppress(ConnectionError):
            await reader.read()
        writer.close()

    server = await asyncio.start_server(speak, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    settings = Provider(base_url=f"{scheme}://127.0.0.1:{port}/v1", model="any", api_key=KEY)

    async with server, calling("normal", settings=settings) as caller:
        with pytest.raises(SixhopError) as caught:
            await caller.ask()

    assert facts(caught.value) == (Code.ABORTED, reason, cause)


@requirement("model:provider-faults-are-typed")
async def test_a_full_pool_is_our_own_refusal() -> None:
    settings = Provider(base_url="", model="any", api_key=KEY, connect_timeout_s=0.2)

    async with (
        calling("stall", settings=settings, connections=1) as caller,
        caller.streaming() as pieces,
    ):
        await anext(pieces)
        with pytest.raises(BulkheadFullError, match="all 1 HTTP connections of the group core"):
            await caller.ask()

    assert len(caller.provider.log.records) == 1
