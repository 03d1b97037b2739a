"""Counts what reaches the provider when both hops before it follow their rules."""

import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import grpc
import pytest

from services.runtime.client import Dependency
from services.runtime.clock import MonotonicClock
from services.runtime.config import load_config
from services.runtime.conversation import Message
from services.runtime.errors import DependencyError, SixhopError
from services.runtime.generation import Generation, ModelClient, whole
from services.runtime.outgoing import Outgoing, own_work
from services.runtime.stack import client_policies, client_stack
from services.runtime.statistics import Activity
from services.runtime.topology import DOMAIN, MODEL
from tests.integration.model.test_faults import FAULTS, REFUSALS
from tests.integration.model.test_hop import Chain, chain
from tests.provider.behaviour import Behaviour, Script
from tests.requirements import requirement

CLOCK = MonotonicClock()
QUICK: Mapping[str, Any] = {
    "CALLS__LLM__STEP_TIMEOUT_S": "1",
    "CALLS__LLM__READ_TIMEOUT_S": "1",
    "MODEL__CONNECT_TIMEOUT_S": "0.5",
}
PATIENT: Mapping[str, Any] = {}
FAILING = sorted({case[0] for case in (*FAULTS, *REFUSALS)})
NEVER = ["400", "400-context", "400-policy", "401", "402", "403", "404", "content-filter", "html"]
SILENT = ["silent", "slow-headers", "slow-first-chunk", "keep-alive-forever"]


@dataclass(frozen=True, slots=True)
class Asking:
    """Is a hop that calls the model, and what stands behind that."""

    chain: Chain
    client: ModelClient

    async def ask(self, deadline_s: float = 12.0) -> Generation:
        """Generate once, with all retries of both hops."""
        with own_work(DOMAIN, "test", deadline_s, CLOCK):
            return await whole(self.client.stream([Message("user", "How many orders are there?")]))

    async def fail(self, deadline_s: float = 12.0) -> DependencyError:
        """Generate once, and return how it failed."""
        with pytest.raises(SixhopError) as caught:
            await self.ask(deadline_s)
        assert isinstance(caught.value, DependencyError)
        return caught.value

    @property
    def attempts(self) -> int:
        """Return how many requests have reached the provider."""
        return len(self.chain.provider.log.records)


@asynccontextmanager
async def asking(
    behaviour: str | Script, settings: Mapping[str, Any] = QUICK
) -> AsyncIterator[Asking]:
    """Serve the model hop before a provider, and call it with every policy of a caller."""
    async with chain(behaviour, **settings) as running:
        config = running.hop.config
        policies = client_policies(config, CLOCK, random.Random(7), lambda change: None)
        stack = client_stack(CLOCK, Activity(), policies)
        outgoing = Outgoing(DOMAIN, MODEL, load_config(None, {}).limits(MODEL), stack, CLOCK)
        async with grpc.aio.insecure_channel(config.address(MODEL)) as channel:
            yield Asking(running, ModelClient(Dependency(outgoing, channel)))


def reason(error: DependencyError) -> str:
    assert error.origin is not None
    return error.origin.reason


@requirement("model:attempts-do-not-multiply")
@pytest.mark.parametrize("behaviour", FAILING)
async def test_two_hops_that_repeat_never_make_more_than_two_attempts(behaviour: str) -> None:
    async with asking(behaviour) as hops:
        error = await hops.fail()

    assert error.origin is not None
    assert error.origin.hop == "llm"
    assert hops.attempts <= 2


@requirement("model:attempts-do-not-multiply")
@pytest.mark.parametrize("behaviour", ["500", "reset?after_chunks=0", "429-soon"])
async def test_what_passes_is_tried_twice_in_all(behaviour: str) -> None:
    async with asking(behaviour, PATIENT) as hops:
        await hops.fail()

    assert hops.attempts == 2


@requirement("model:attempts-do-not-multiply")
@pytest.mark.parametrize("behaviour", SILENT)
async def test_a_silent_provider_is_asked_once(behaviour: str) -> None:
    async with asking(behaviour) as hops:
        error = await hops.fail()

    assert reason(error) == "NO_ANSWER"
    assert hops.attempts == 1


@requirement("model:refusals-are-not-resent")
@pytest.mark.parametrize("behaviour", NEVER)
async def test_what_a_provider_refuses_is_asked_once_by_both_hops_together(behaviour: str) -> None:
    async with asking(behaviour) as hops:
        await hops.fail()

    assert hops.attempts == 1


@requirement("model:refusals-are-not-resent")
async def test_the_caller_learns_that_the_context_is_too_long_and_may_send_less() -> None:
    async with asking(Script(queue=("400-context", "at-once"))) as hops:
        error = await hops.fail()
        answer = await hops.ask()

    assert reason(error) == "CONTEXT_LENGTH"
    assert answer.text == Behaviour().text


@requirement("model:retry-after-is-honoured")
async def test_the_wait_that_a_provider_asks_for_is_the_one_that_is_made() -> None:
    async with asking(Script(default="at-once", queue=("429-soon",)), PATIENT) as hops:
        answer = await hops.ask()
        first, second = hops.chain.provider.log.records

    assert answer.text == Behaviour().text
    assert second.arrived_ms - first.arrived_ms >= 1000


@requirement("model:retry-after-is-honoured")
@pytest.mark.parametrize("behaviour", ["429", "503"])
async def test_a_wait_that_does_not_fit_is_told_at_once_and_not_made(behaviour: str) -> None:
    async with asking(behaviour) as hops:
        error = await hops.fail()

    assert hops.attempts == 1
    assert (error.retry_after_s or 0) > 2


@requirement("model:hopeless-provider-is-left")
@pytest.mark.parametrize("behaviour", ["401", "402", "403"])
async def test_a_provider_that_will_refuse_everything_is_asked_once_by_everybody(
    behaviour: str,
) -> None:
    async with asking(behaviour) as hops:
        first = await hops.fail()
        others = [await hops.fail() for _ in range(3)]

    assert reason(first) in ("PROVIDER_KEY_REFUSED", "PROVIDER_NO_BALANCE")
    assert {reason(error) for error in others} == {"CIRCUIT_OPEN"}
    assert all("provider" in error.message for error in others)
    assert hops.attempts == 1


@requirement("model:hopeless-provider-is-left")
async def test_who_comes_after_a_refused_key_is_told_the_setting_to_correct() -> None:
    async with asking("401") as hops:
        await hops.fail()
        error = await hops.fail()

    assert "SIXHOP_MODEL__API_KEY" in error.message
