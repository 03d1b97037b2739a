"""Shows that OpenAI's own SDK takes the simulator for a provider."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest

from services.model.sim.server import Simulator
from tests.integration.model.sim.raw import ANSWER, simulated
from tests.requirements import requirement

pytestmark = requirement("model-sim:openai-sdk")

USER: list[Any] = [{"role": "user", "content": "Please look_up it"}]
TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "look_up",
            "parameters": {"type": "object", "properties": {"region": {"type": "string"}}},
        },
    }
]


@asynccontextmanager
async def sdk(simulator: Simulator) -> AsyncIterator[openai.AsyncOpenAI]:
    """Speak with the simulator by the SDK while the block runs."""
    async with openai.AsyncOpenAI(
        api_key="k", base_url=simulator.base_url, max_retries=0, timeout=5.0
    ) as client:
        yield client


async def collected(client: openai.AsyncOpenAI, **more: Any) -> tuple[str, list[Any]]:
    stream = await client.chat.completions.create(
        model="m",
        messages=USER,
        stream=True,
        stream_options={"include_usage": True},
        **more,
    )
    chunks = [chunk async for chunk in stream]
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    return text, chunks


async def test_an_answer_in_one_is_read() -> None:
    async with simulated() as simulator, sdk(simulator) as client:
        answer = await client.chat.completions.create(model="m", messages=USER)

    assert answer.choices[0].message.content == ANSWER
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 5


async def test_a_stream_is_read_with_its_usage() -> None:
    async with simulated() as simulator, sdk(simulator) as client:
        text, chunks = await collected(client)

    assert text == ANSWER
    assert chunks[-1].choices == []
    assert chunks[-1].usage.completion_tokens == 5
    assert chunks[-2].choices[0].finish_reason == "stop"


@pytest.mark.parametrize(
    "framing", ["crlf", "cr", "mixed-lines", "one-byte", "no-space", "multiline", "duplicate-done"]
)
async def test_a_stream_is_read_in_every_framing_that_the_sdk_knows(framing: str) -> None:
    async with simulated(faults=(framing,)) as simulator, sdk(simulator) as client:
        text, _ = await collected(client)

    assert text == ANSWER


async def test_a_tool_call_is_read_in_one_and_in_pieces() -> None:
    async with simulated() as simulator, sdk(simulator) as client:
        answer = await client.chat.completions.create(model="m", messages=USER, tools=TOOLS)
        _, chunks = await collected(client, tools=TOOLS)

    [call] = answer.choices[0].message.tool_calls or []
    pieces = [c.choices[0].delta.tool_calls for c in chunks if c.choices]
    arguments = "".join(p[0].function.arguments or "" for p in pieces if p)
    assert answer.choices[0].finish_reason == "tool_calls"
    assert call.type == "function"
    assert (call.function.name, call.function.arguments) == ("look_up", arguments)
    assert arguments == '{"region":"text"}'


async def test_reasoning_is_read_as_an_extra_field() -> None:
    async with simulated(faults=("reasoning",)) as simulator, sdk(simulator) as client:
        answer = await client.chat.completions.create(model="m", messages=USER)

    assert getattr(answer.choices[0].message, "reasoning_content", "")


async def test_models_are_listed() -> None:
    async with simulated(models=("a", "b")) as simulator, sdk(simulator) as client:
        names = [model.id async for model in client.models.list()]

    assert names == ["a", "b"]


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("400", openai.BadRequestError),
        ("401", openai.AuthenticationError),
        ("403", openai.PermissionDeniedError),
        ("404", openai.NotFoundError),
        ("409", openai.ConflictError),
        ("422", openai.UnprocessableEntityError),
        ("429", openai.RateLimitError),
        ("503", openai.InternalServerError),
        ("context", openai.BadRequestError),
        ("reset-before-headers", openai.APIConnectionError),
        ("error-event", openai.APIError),
    ],
)
async def test_a_fault_is_the_error_that_the_sdk_has_for_it(
    fault: str, kind: type[openai.OpenAIError]
) -> None:
    async with simulated(faults=(fault,)) as simulator, sdk(simulator) as client:
        with pytest.raises(kind):
            await collected(client)

    assert len(simulator.world.log.records) == 1


async def test_a_cut_stream_looks_complete_to_the_sdk_and_not_to_the_verdict() -> None:
    async with simulated(faults=("eof",)) as simulator, sdk(simulator) as client:
        text, chunks = await collected(client)

    assert text == "alpha beta gamma"
    assert not any(c.choices[0].finish_reason for c in chunks)
    assert simulator.world.log.records[0].ended == "eof"
