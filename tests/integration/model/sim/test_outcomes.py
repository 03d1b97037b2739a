"""Asks the simulator for every fault through the model hop, as a caller with all its retries."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import grpc
import pytest

from services.model.service import open_hop
from services.model.sim.server import Simulator
from services.model.sim.vocabulary import FAULTS
from services.runtime.call import Identity
from services.runtime.client import Dependency
from services.runtime.clock import MonotonicClock
from services.runtime.config import load_config
from services.runtime.conversation import Message
from services.runtime.errors import DependencyError, SixhopError
from services.runtime.generation import ModelClient, whole
from services.runtime.outgoing import Outgoing, own_work
from services.runtime.process import serving
from services.runtime.stack import client_policies, client_stack
from services.runtime.statistics import Activity
from services.runtime.topology import DOMAIN, MODEL
from tests.integration.model.sim.raw import simulated
from tests.ports import free_port
from tests.requirements import requirement

pytestmark = requirement("model:provider-faults-are-typed", "model:attempts-do-not-multiply")

CLOCK = MonotonicClock()
WHOLE = "whole"
SILENT = "NO_ANSWER"
OUTCOMES: dict[str, str] = {
    "400": "PROVIDER_REFUSED",
    "401": "PROVIDER_KEY_REFUSED",
    "402": "PROVIDER_NO_BALANCE",
    "403": "PROVIDER_KEY_REFUSED",
    "404": "PROVIDER_MODEL_UNKNOWN",
    "408": "PROVIDER_ERROR",
    "409": "PROVIDER_REFUSED",
    "413": "CONTEXT_LENGTH",
    "422": "PROVIDER_REFUSED",
    "429": "PROVIDER_RATE_LIMITED",
    "500": "PROVIDER_ERROR",
    "502": "PROVIDER_ERROR",
    "503": "PROVIDER_ERROR",
    "504": "PROVIDER_ERROR",
    "529": "PROVIDER_ERROR",
    "retry-after": "PROVIDER_RATE_LIMITED",
    "retry-date": "PROVIDER_RATE_LIMITED",
    "redirect": "PROTOCOL_ERROR",
    "context": "CONTEXT_LENGTH",
    "content-refused": "CONTENT_FILTERED",
    "silent": SILENT,
    "silent-after-headers": SILENT,
    "stall": SILENT,
    "stall-mid-event": SILENT,
    "stall-mid-chunk": SILENT,
    "keep-alive-forever": SILENT,
    "stall-keep-alive": SILENT,
    "slow-headers": SILENT,
    "drip-headers": SILENT,
    "slow-first-token": SILENT,
    "drip": SILENT,
    "flood": SILENT,
    "reset": "CONNECTION_LOST",
    "reset-before-headers": "CONNECTION_LOST",
    "reset-after-headers": "CONNECTION_LOST",
    "reset-mid-event": "CONNECTION_LOST",
    "reset-mid-chunk": "CONNECTION_LOST",
    "fin": "CONNECTION_LOST",
    "fin-before-headers": "CONNECTION_LOST",
    "fin-after-headers": "CONNECTION_LOST",
    "fin-mid-event": "CONNECTION_LOST",
    "fin-mid-chunk": "CONNECTION_LOST",
    "eof": "TRUNCATED",
    "eof-at-once": "TRUNCATED",
    "eof-unframed": "TRUNCATED",
    "done-without-finish": "TRUNCATED",
    "no-finish": "TRUNCATED",
    "malformed": "PROTOCOL_ERROR",
    "not-json": "PROTOCOL_ERROR",
    "not-an-object": "PROTOCOL_ERROR",
    "html": "PROTOCOL_ERROR",
    "empty": "PROTOCOL_ERROR",
    "json": "PROTOCOL_ERROR",
    "wrong-type": "PROTOCOL_ERROR",
    "error-event": "PROVIDER_ERROR",
    "error-text": "PROVIDER_ERROR",
    "error-object": "PROVIDER_ERROR",
    "event-error": "PROVIDER_ERROR",
    "no-choices": "PROVIDER_ERROR",
    "choices-null": "PROVIDER_ERROR",
    "odd-finish": "PROVIDER_ERROR",
    "content-filter": "CONTENT_FILTERED",
    "overloaded": "PROVIDER_OVERLOADED",
}
"""What is told of each fault as the origin's reason; every other is a whole answer."""
ELSEWHERE = {"refuse-connections", "flapping", "bursts", "slow", "deaf"}
"""They meet more than their own request, or need a client that leaves."""


def reason(error: SixhopError) -> str:
    assert isinstance(error, DependencyError), error
    assert error.origin is not None
    assert error.origin.hop == "llm"
    return error.origin.reason


@dataclass(frozen=True, slots=True)
class Asking:
    """Calls the model hop, behind which the simulator fails."""

    simulator: Simulator
    client: Callable[[], ModelClient]

    async def outcome(self, fault: str) -> str:
        """Return what a caller learns of a fault: the origin's reason, or that it was whole."""
        with own_work(DOMAIN, "test", 15.0, CLOCK) as inbound:
            inbound.identity = Identity(request_id=fault)
            try:
                words = f"Why? [sim: {fault}]"
                answer = await whole(self.client().stream([Message("user", words)]))
            except SixhopError as error:
                return reason(error)
        assert answer.finish_reason in ("stop", "length")
        assert answer.text
        return WHOLE

    def attempts(self, fault: str) -> int:
        """Return how many requests have come for a fault."""
        return sum(record.request_id == fault for record in self.simulator.world.log.records)


@asynccontextmanager
async def asking() -> AsyncIterator[Asking]:
    """Serve the model hop before a simulator; breakers and budgets let every fault be seen."""
    async with simulated() as simulator:
        environ = {
            "SIXHOP_MODEL__PORT": str(free_port()),
            "SIXHOP_MODEL__BASE_URL": f"http://127.0.0.1:{simulator.port}/v1",
            "SIXHOP_MODEL__MODEL": "sim-large",
            "SIXHOP_CALLS__LLM__STEP_TIMEOUT_S": "4",
            "SIXHOP_CALLS__LLM__READ_TIMEOUT_S": "2",
            "SIXHOP_BREAKER__MODE": "off",
            "SIXHOP_RETRY__MAX_TOKENS": "1000",
        }
        config = load_config(environ=environ)
        async with (
            serving("model", open_hop, config, CLOCK),
            grpc.aio.insecure_channel(config.address(MODEL)) as channel,
        ):

            def client() -> ModelClient:
                policies = client_policies(config, CLOCK, random.Random(7), lambda change: None)
                stack = client_stack(CLOCK, Activity(), policies)
                outgoing = Outgoing(DOMAIN, MODEL, config.limits(MODEL), stack, CLOCK)
                return ModelClient(Dependency(outgoing, channel))

            yield Asking(simulator, client)


def test_every_fault_has_an_outcome() -> None:
    assert set(OUTCOMES) <= set(FAULTS)
    assert set(FAULTS) >= ELSEWHERE


FLOOD = "flood"
"""Takes all the time of this process, in which the hop and all clients are."""
QUIET = [name for name in FAULTS if name not in {FLOOD, *ELSEWHERE}]
WAITED_FOR = [name for name in QUIET if OUTCOMES.get(name) == SILENT]
"""They take the whole time of a step, and so do it together."""
OTHERS = [name for name in QUIET if name not in WAITED_FOR]
PARTS = {
    **{str(part): OTHERS[part::5] for part in range(5)},
    SILENT: WAITED_FOR,
    FLOOD: [FLOOD],
}


@pytest.mark.parametrize("names", PARTS.values(), ids=PARTS)
async def test_every_fault_of_the_simulator_has_its_name_and_few_attempts(
    names: list[str],
) -> None:
    async with asking() as hops:
        found = await asyncio.gather(*[hops.outcome(name) for name in names])
        attempts = {name: hops.attempts(name) for name in names}

    expected = {name: OUTCOMES.get(name, WHOLE) for name in names}
    assert dict(zip(names, found, strict=True)) == expected
    assert max(attempts.values()) <= 2
    assert {attempts[name] for name in names if expected[name] in (SILENT, WHOLE)} == {1}
