"""Holds the questions about a provider's health to being few, and its answers to being numbers."""

import asyncio
import random
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import aiohttp
import orjson
import pytest

from services.model.backend import Provider
from services.model.provider_health import (
    INTERVAL_S,
    MAX_AGE_S,
    TIMEOUT_S,
    UNKNOWN_INTERVAL_S,
    ProviderHealth,
    Told,
    health_url,
    read_health,
)
from tests.requirements import requirement
from tests.unit.runtime.fake_time import START, LoopClock, in_no_time

PROVIDER = Provider(base_url="http://provider/v1", model="m", api_key="sk-1")
CLOCK = LoopClock()
GOOD = orjson.dumps({"status": "ok", "estimated_qps": 12.5, "avg_latency_ms": 840})
Answer = tuple[int, bytes] | BaseException | float
"""A status and a body, an error, or so many seconds of silence."""


class Pool:
    """Answers questions as the test says, the last answer for ever."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        self._answers = list(answers)
        self.asked_at: list[float] = []
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        self.running = 0
        self.most_running = 0

    async def send(self, method: str, url: str, *, headers: Any, connect_timeout_s: float) -> Any:
        self.asked_at.append(CLOCK.now() - START)
        self.asked.append((method, url, dict(headers)))
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
            if isinstance(answer, float):
                await CLOCK.sleep(answer)
                raise aiohttp.ClientConnectionError
            if isinstance(answer, BaseException):
                raise answer
            return _Sent(*answer)
        finally:
            self.running -= 1


class _Sent:
    def __init__(self, status: int, body: bytes) -> None:
        self._body = [body, b""]
        content = SimpleNamespace(readany=self._read)
        self.response = SimpleNamespace(status=status, content=content)
        self.aborted = False

    async def _read(self) -> bytes:
        return self._body.pop(0)

    def abort(self) -> None:
        self.aborted = True


def asking(*answers: Answer) -> tuple[ProviderHealth, Pool, list[Told]]:
    """Return who asks, what answers, and what was told."""
    pool, told = Pool(answers), list[Told]()
    anything: Any = pool
    return ProviderHealth(anything, PROVIDER, CLOCK, random.Random(7), told.append), pool, told


@requirement("health:provider-is-asked")
def test_a_page_is_asked_for_twice_a_minute_and_never_twice_at_once() -> None:
    health, pool, told = asking((200, GOOD))

    async def scenario() -> None:
        task = asyncio.create_task(health.ask_forever())
        await CLOCK.sleep(600.0)
        task.cancel()
        await asyncio.wait({task})

    in_no_time(scenario())

    assert 20 <= len(pool.asked_at) <= 26
    assert pool.most_running == 1
    assert (
        len({after - now for now, after in zip(pool.asked_at, pool.asked_at[1:], strict=False)}) > 9
    )
    assert set(told) == {Told(estimated_qps=12.5, avg_latency_s=0.84)}
    assert pool.asked[0] == (
        "GET",
        "http://provider/v1/health",
        {"Accept": "application/json", "Authorization": "Bearer sk-1"},
    )


@requirement("health:provider-is-asked")
@pytest.mark.parametrize(
    ("answer", "pause_s", "told"),
    [
        ((200, GOOD), INTERVAL_S, True),
        ((404, b"{}"), UNKNOWN_INTERVAL_S, False),
        ((401, b"{}"), UNKNOWN_INTERVAL_S, False),
        ((405, b""), UNKNOWN_INTERVAL_S, False),
        ((200, b'{"status":"ok"}'), UNKNOWN_INTERVAL_S, False),
        ((200, b"<html>"), UNKNOWN_INTERVAL_S, False),
        ((503, GOOD), INTERVAL_S, False),
        ((429, b""), INTERVAL_S, False),
        (aiohttp.ClientConnectionError(), INTERVAL_S, False),
        (3600.0, INTERVAL_S, False),
    ],
    ids=str,
)
def test_one_that_has_no_page_is_left_alone(answer: Answer, pause_s: float, told: bool) -> None:
    health, _, heard = asking(answer)

    async def scenario() -> tuple[float, float]:
        return await health.ask(), CLOCK.now() - START

    found_s, took_s = in_no_time(scenario())

    assert found_s == pause_s
    assert bool(heard) is told
    assert took_s <= TIMEOUT_S


@requirement("health:provider-is-asked")
def test_what_was_told_ages_and_is_kept_over_a_question_without_an_answer() -> None:
    health, _, _ = asking((200, GOOD), aiohttp.ClientConnectionError())

    async def scenario() -> list[float | None]:
        seen = [health.estimated_qps()]
        await health.ask()
        seen.append(health.estimated_qps())
        await health.ask()
        await CLOCK.sleep(MAX_AGE_S)
        seen.append(health.estimated_qps())
        await CLOCK.sleep(1.0)
        seen.append(health.estimated_qps())
        return seen

    assert in_no_time(scenario()) == [None, 12.5, 12.5, None]


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        ("http://h:1/v1", "http://h:1/v1/health"),
        ("https://api.example.com", "https://api.example.com/v1/health"),
        ("https://h/openai/v1", "https://h/openai/v1/health"),
    ],
)
def test_the_page_lies_beside_the_api(base_url: str, url: str) -> None:
    assert health_url(base_url) == url


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (GOOD, Told(estimated_qps=12.5, avg_latency_s=0.84)),
        (b'{"estimated_qps":0}', Told(estimated_qps=0.0)),
        (b'{"avg_latency_ms":5,"estimated_qps":null}', Told(avg_latency_s=0.005)),
        (b'{"estimated_qps":-1}', None),
        (b'{"estimated_qps":1e300}', None),
        (b'{"estimated_qps":true}', None),
        (b'{"estimated_qps":"12"}', None),
        (b"[]", None),
        (b"", None),
        (b"\xff", None),
    ],
)
def test_only_numbers_that_can_be_are_taken(body: bytes, told: Told | None) -> None:
    assert read_health(body) == told
