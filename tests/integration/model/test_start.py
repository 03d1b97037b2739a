"""Starts the model hop before providers that list their models, well or not at all."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from services.model.service import open_hop
from services.runtime.clock import MonotonicClock
from services.runtime.config import ConfigError, load_config
from services.runtime.process import serving
from tests.integration.model.calls import KEY
from tests.integration.model.test_hop import chain, collect
from tests.logged import logged
from tests.ports import free_port
from tests.provider.behaviour import Script
from tests.requirements import requirement

pytestmark = requirement("model:is-listed")


@asynccontextmanager
async def answering(answer: bytes) -> AsyncIterator[str]:
    """Serve HTTP that gives one answer to everything, or none when it is empty."""
    done = asyncio.Event()

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        if not answer:
            await done.wait()
        writer.close()

    server = await asyncio.start_server(speak, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        done.set()


async def start(base_url: str, **settings: str) -> list[dict[str, object]]:
    """Start and stop the hop; return what it has logged about the model."""
    environ = {f"SIXHOP_MODEL__{name.upper()}": value for name, value in settings.items()}
    environ |= {
        "SIXHOP_MODEL__BASE_URL": base_url,
        "SIXHOP_MODEL__MODEL": "flash",
        "SIXHOP_MODEL__API_KEY": KEY,
        "SIXHOP_MODEL__PORT": str(free_port()),
    }
    config = load_config(environ=environ)
    with logged() as log:
        async with serving("model", open_hop, config, MonotonicClock()) as hop:
            assert hop.services
    return [line for line in log.lines() if line["event"] == "model_unchecked"]


async def test_a_model_that_is_listed_is_served() -> None:
    with logged() as log:
        async with chain(Script(default="at-once", models=("other", "flash"))) as running:
            events = await collect(running.stub)

    assert events[-1].WhichOneof("event") == "finished"
    assert "model_unchecked" not in log.events()


async def test_a_model_that_is_not_listed_is_refused_with_those_that_are() -> None:
    with pytest.raises(ConfigError, match="it has: flashy, pro; set SIXHOP_MODEL__MODEL"):
        async with chain(Script(models=("pro", "flashy"))):
            pass


@pytest.mark.parametrize("models", [None, ()], ids=["cannot", "nothing"])
async def test_a_provider_that_lists_nothing_is_served(models: tuple[str, ...] | None) -> None:
    with logged() as log:
        async with chain(Script(default="at-once", models=models)) as running:
            events = await collect(running.stub)

    assert events[-1].WhichOneof("event") == "finished"
    assert log.events().count("model_unchecked") == 1


async def test_whoever_says_that_the_list_is_not_complete_is_not_held_to_it() -> None:
    script = Script(default="at-once", models=("other",))

    async with chain(script, MODEL__MODELS_TIMEOUT_S="0") as running:
        assert await collect(running.stub)


async def test_a_provider_that_is_away_does_not_keep_the_hop_from_starting() -> None:
    (line,) = await start(f"http://127.0.0.1:{free_port()}/v1")

    assert line["level"] == "warning"
    assert "SIXHOP_MODEL__BASE_URL" in str(line["problem"])


async def test_a_provider_that_is_silent_holds_the_start_up_no_longer_than_it_may() -> None:
    async with answering(b"") as base_url, asyncio.timeout(5):
        (line,) = await start(base_url, models_timeout_s="0.2")

    assert "0.2 s" in str(line["problem"])


@pytest.mark.parametrize(
    ("answer", "level", "problem"),
    [
        (b"HTTP/1.1 405 X\r\ncontent-length: 0\r\n\r\n", "warning", "does not list"),
        (b"HTTP/1.1 500 X\r\ncontent-length: 0\r\n\r\n", "warning", "failed"),
        (b"HTTP/1.1 401 X\r\ncontent-length: 0\r\n\r\n", "error", "SIXHOP_MODEL__API_KEY"),
        (b"HTTP/1.1 200 X\r\ncontent-length: 6\r\n\r\n<html>", "warning", "no JSON"),
        (b"HTTP/1.1 200 X\r\ncontent-length: 9\r\n\r\n[]", "warning", "lost"),
        (b"220 mail.example.com ESMTP\r\n\r\n", "warning", "no valid HTTP"),
    ],
    ids=["405", "500", "401", "html", "cut", "no http"],
)
async def test_whatever_a_provider_answers_instead_of_a_list_the_hop_starts(
    answer: bytes, level: str, problem: str
) -> None:
    async with answering(answer) as base_url:
        (line,) = await start(base_url)

    assert line["level"] == level
    assert problem in str(line["problem"])
    assert KEY not in str(line)


async def test_the_embedded_model_is_not_asked() -> None:
    with logged() as log:
        async with chain(Script(models=("other",)), local=True):
            pass

    assert "model_unchecked" not in log.events()
