"""Calls the model hop over gRPC, with the scriptable provider behind it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import grpc
import pytest

from services.model.service import open_hop
from services.runtime.clock import MonotonicClock
from services.runtime.config import ConfigError, load_config
from services.runtime.process import Hop, serving
from services.runtime.status import DETAILS_KEY, error_info
from sixhop.model.v1 import model_pb2
from sixhop.model.v1.model_pb2_grpc import ModelServiceStub
from sixhop.type.v1 import chat_pb2
from tests.integration.model.calls import KEY
from tests.ports import free_port
from tests.provider.behaviour import Behaviour, Script
from tests.provider.server import ScriptedProvider
from tests.provider.server import serving as serving_provider
from tests.requirements import requirement

USER = chat_pb2.ChatMessage(role=chat_pb2.CHAT_ROLE_USER, content="How many orders are there?")
REQUEST = model_pb2.GenerateRequest(messages=[USER])


@dataclass(frozen=True, slots=True)
class Chain:
    """Holds a model hop and the provider behind it."""

    provider: ScriptedProvider
    hop: Hop
    stub: ModelServiceStub


@asynccontextmanager
async def chain(
    behaviour: str | Script, *, local: bool = False, **settings: Any
) -> AsyncIterator[Chain]:
    """Serve both while the block runs; the hop takes the provider for the embedded model or not.

    The settings are those of the environment, without their prefix.
    """
    script = Script(default=behaviour) if isinstance(behaviour, str) else behaviour
    async with serving_provider(script) as provider:
        environ = {"SIXHOP_MODEL__PORT": str(free_port()), "SIXHOP_MODEL__API_KEY": KEY}
        if local:
            environ["SIXHOP_LLM__PORT"] = str(provider.port)
        else:
            environ["SIXHOP_MODEL__BASE_URL"] = provider.base_url
            environ["SIXHOP_MODEL__MODEL"] = "flash"
        environ |= {f"SIXHOP_{name}": value for name, value in settings.items()}
        config = load_config(environ=environ)
        async with (
            serving("model", open_hop, config, MonotonicClock()) as hop,
            grpc.aio.insecure_channel(config.address("model")) as channel,
        ):
            yield Chain(provider, hop, ModelServiceStub(channel))


async def collect(
    stub: ModelServiceStub, request: model_pb2.GenerateRequest = REQUEST
) -> list[model_pb2.GenerateResponse]:
    return [event async for event in stub.Generate(request, timeout=10)]


@requirement("model:no-finish-reason-no-success")
async def test_a_generation_is_numbered_text_and_one_finish() -> None:
    async with chain("reasoning") as running:
        events = await collect(running.stub)

    kinds = [event.WhichOneof("event") for event in events]
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    assert kinds[0] == "reasoning_delta"
    assert kinds.index("finished") == len(kinds) - 1
    assert "".join(event.text_delta.text for event in events) == Behaviour().text
    assert events[-1].finished.model == "flash"
    assert events[-1].finished.finish_reason == "stop"
    assert events[-1].finished.usage.output_token_count == 15


@requirement("model:embedded-model-says-so")
async def test_the_embedded_model_names_itself_as_a_demo() -> None:
    async with chain("at-once", local=True) as running:
        events = await collect(running.stub)
        attributes = running.hop.runtime.attributes()

    assert events[-1].finished.model == "SmolLM2-135M-Instruct (local demo model)"
    assert attributes["model"] == "SmolLM2-135M-Instruct (local demo model)"


@requirement("model:provider-faults-are-typed")
@pytest.mark.parametrize(
    ("behaviour", "code", "origin_reason"),
    [
        ("truncate", grpc.StatusCode.ABORTED, "TRUNCATED"),
        ("401", grpc.StatusCode.ABORTED, "PROVIDER_KEY_REFUSED"),
        ("429", grpc.StatusCode.RESOURCE_EXHAUSTED, "PROVIDER_RATE_LIMITED"),
    ],
)
async def test_a_fault_of_the_provider_reaches_the_caller_with_its_origin(
    behaviour: str, code: grpc.StatusCode, origin_reason: str
) -> None:
    async with chain(behaviour) as running:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await collect(running.stub)

    info = error_info(dict(caught.value.trailing_metadata() or ()).get(DETAILS_KEY))
    assert caught.value.code() is code
    assert info is not None
    assert info.domain == "model.sixhop"
    assert info.metadata["originHop"] == "llm"
    assert info.metadata["originReason"] == origin_reason
    assert KEY not in str(caught.value)


@requirement("model:cancel-closes-the-connection")
async def test_a_caller_that_goes_takes_the_providers_connection_with_it() -> None:
    async with chain("stall") as running:
        call = running.stub.Generate(REQUEST, timeout=10)
        await call.read()

        call.cancel()
        with suppress(asyncio.CancelledError):
            await call.read()
        record = await running.provider.log.wait_for(lambda log: log.closed(1), timeout_s=0.25)

        assert record.ended == "client_closed"
        await idle(running.hop)


@requirement("model:budget-travels")
async def test_the_provider_gets_less_time_than_the_hop_has() -> None:
    async with chain("at-once") as running:
        [_ async for _ in running.stub.Generate(REQUEST, timeout=4)]
        record = running.provider.log.records[0]

    # R − margin, with the margin 0.12 · R.
    assert record.deadline_ms is not None
    assert record.deadline_ms <= (4 - 0.48) * 1000 * 1.04 + 5


@requirement("model:tool-calls-are-whole")
async def test_tool_calls_come_whole_and_before_the_end() -> None:
    request = model_pb2.GenerateRequest(
        messages=[USER],
        tools=[chat_pb2.ToolOffer(name=name, arguments_schema="{}") for name in ("sql", "mail")],
        tool_choice="required",
    )

    async with chain("tools", MODEL__DIALECT="deepseek") as running:
        events = await collect(running.stub, request)
        body = running.provider.log.records[0].body

    asked = [event.tool_call for event in events if event.WhichOneof("event") == "tool_call"]
    assert [(call.id, call.name, call.arguments) for call in asked] == [
        ("call-a", "sql", '{"q": "orders of 数据"}'),
        ("call-b", "mail", "{}"),
    ]
    assert events[-1].finished.finish_reason == "tool_calls"
    assert [event.WhichOneof("event") for event in events[-3:]] == [
        "tool_call",
        "tool_call",
        "finished",
    ]
    assert body["tool_choice"] == "required"
    assert body["thinking"] == {"type": "disabled"}


@requirement("model:tool-calls-are-whole")
async def test_a_tool_call_that_takes_long_to_write_is_progress_all_the_while() -> None:
    fragments = tuple(
        {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "sql", "arguments": "1"}}]}
        for _ in range(12)
    )
    slow = Behaviour(text="", deltas=fragments, chunk_interval_s=0.1, finish_reason="tool_calls")
    script = Script(default="slow", behaviours={"slow": slow})
    request = model_pb2.GenerateRequest(messages=[USER], tools=[chat_pb2.ToolOffer(name="sql")])
    limits: dict[str, Any] = {
        "CALLS__LLM__STEP_TIMEOUT_S": "0.5",
        "CALLS__LLM__READ_TIMEOUT_S": "0.5",
        "MODEL__CONNECT_TIMEOUT_S": "0.4",
    }

    async with chain(script, MODEL__TOOLS="true", **limits) as running:
        events = await collect(running.stub, request)

    parts = [each.tool_call_part for each in events if each.HasField("tool_call_part")]
    assert len(parts) > 2
    assert {part.name for part in parts} == {"sql"}
    assert events[-2].tool_call.arguments == "1" * 12


@requirement("model:no-pretence")
@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (
            model_pb2.GenerateRequest(messages=[USER], tools=[chat_pb2.ToolOffer(name="sql")]),
            "tools",
        ),
        (
            model_pb2.GenerateRequest(
                messages=[
                    USER,
                    chat_pb2.ChatMessage(role=chat_pb2.CHAT_ROLE_ASSISTANT, content="There"),
                ],
                continues_last=True,
            ),
            "continues_last",
        ),
    ],
)
async def test_what_the_model_cannot_do_is_refused_and_asks_nobody(
    request_: model_pb2.GenerateRequest, field: str
) -> None:
    async with chain("normal") as running:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await collect(running.stub, request_)

    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert (caught.value.details() or "").startswith(field)
    assert not running.provider.log.records


@requirement("model:no-pretence")
async def test_an_answer_is_gone_on_from_where_the_dialect_serves_it() -> None:
    begun = chat_pb2.ChatMessage(role=chat_pb2.CHAT_ROLE_ASSISTANT, content="There")
    request = model_pb2.GenerateRequest(messages=[USER, begun], continues_last=True)

    async with chain("at-once", MODEL__DIALECT="deepseek") as running:
        events = await collect(running.stub, request)
        body = running.provider.log.records[0].body

    assert events[-1].WhichOneof("event") == "finished"
    assert body["messages"][-1] == {"role": "assistant", "content": "There", "prefix": True}


@requirement("model:describes-itself")
async def test_a_model_describes_what_it_can_do() -> None:
    async with chain(
        "normal", MODEL__DIALECT="deepseek", MODEL__MAX_OUTPUT_TOKENS="300"
    ) as running:
        found = await running.stub.DescribeModel(model_pb2.DescribeModelRequest(), timeout=5)

    assert found.model == "flash"
    assert (found.window_token_count, found.max_output_token_count) == (1_000_000, 300)
    assert (found.tools, found.prefill, found.wants_reasoning) == (True, True, True)
    assert list(found.languages) == ["en", "zh"]


@requirement("model:describes-itself", "model:embedded-model-says-so")
async def test_the_embedded_model_describes_itself_as_a_demo() -> None:
    async with chain("normal", local=True) as running:
        found = await running.stub.DescribeModel(model_pb2.DescribeModelRequest(), timeout=5)

    assert found.model == "SmolLM2-135M-Instruct (local demo model)"
    assert (found.window_token_count, found.tools, list(found.languages)) == (2048, False, ["en"])


@requirement("model:provider-faults-are-typed")
async def test_a_call_without_a_prompt_is_the_callers_error_and_asks_nobody() -> None:
    async with chain("normal") as running:
        call = running.stub.Generate(model_pb2.GenerateRequest(), timeout=10)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call.read()

    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert not running.provider.log.records


@requirement("model:provider-faults-are-typed")
async def test_a_hop_that_cannot_know_its_provider_refuses_to_start() -> None:
    environ = {
        "SIXHOP_MODEL__BASE_URL": "https://api.example.com/v1",
        "SIXHOP_MODEL__PORT": str(free_port()),
    }
    config = load_config(environ=environ)

    with pytest.raises(ConfigError, match="SIXHOP_MODEL__MODEL"):
        async with serving("model", open_hop, config, MonotonicClock()):
            pass


async def idle(hop: Hop) -> None:
    """Wait until a hop has nothing left to do."""
    async with asyncio.timeout(0.25):
        while hop.activity.inflight or hop.activity.outgoing:  # noqa: ASYNC110  # it has no event
            await asyncio.sleep(0.002)


@requirement("model:counts-tokens")
@pytest.mark.parametrize(
    ("settings", "estimated"),
    [
        ({"MODEL__DIALECT": "deepseek"}, False),
        ({"MODEL__DIALECT": "deepseek", "MODEL__TOKENIZER": "estimate"}, True),
        # The provider of the tests has no tokenizer.
        ({"MODEL__DIALECT": "llama.cpp"}, True),
        ({}, True),
    ],
    ids=str,
)
async def test_tokens_are_counted_or_the_count_is_an_estimate_that_says_so(
    settings: dict[str, Any], estimated: bool
) -> None:
    chinese = chat_pb2.ChatMessage(
        role=chat_pb2.CHAT_ROLE_USER, content="深圳工厂的季度收入，" * 20
    )
    request = model_pb2.CountTokensRequest(messages=[chinese])

    async with chain("normal", **settings) as running:
        found = await running.stub.CountTokens(request, timeout=10)

    assert found.estimated is estimated
    # Ten characters are six tokens, and an estimate takes them for seven and a tenth more.
    least, most = (150, 180) if estimated else (120, 130)
    assert least <= found.token_count <= most


@requirement("model:counts-tokens")
async def test_nothing_cannot_be_counted() -> None:
    async with chain("normal") as running:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await running.stub.CountTokens(model_pb2.CountTokensRequest(), timeout=5)

    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
