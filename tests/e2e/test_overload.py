"""Tests with real processes what too much work costs, and whom: never those it is not for."""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest

from services.runtime.call import Criticality
from services.runtime.topology import DOMAIN, TOOL
from tests.e2e.client import open_client
from tests.e2e.doors import PLACES, DomainDoor, Sender, Sent, ToolDoor, at_once, at_rate
from tests.e2e.suite import Suite, running_suite
from tests.requirements import requirement

pytestmark = pytest.mark.alone

ENGINE = {"SIXHOP_ENGINE__ENABLED": "true"}
EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED
HIGHEST = Criticality.CRITICAL_PLUS
HOT = Sender("hot")


def refusals(calls: Sequence[Sent]) -> Counter[tuple[grpc.StatusCode, str, bool]]:
    """Count how calls were refused: code, reason, and whether they were told when to come back."""
    return Counter(
        (call.code, call.reason, bool(call.retry_after_s)) for call in calls if not call.served
    )


LIMITS = {
    "fixed": {"SIXHOP_LIMIT__MAX_INFLIGHT": "96"},
    "gradient": {
        "SIXHOP_LIMIT__ALGORITHM": "gradient",
        "SIXHOP_LIMIT__GRADIENT": '{"initial_limit": 96}',
    },
}
"""How a hop knows its limit."""
LOAD_S, SETTLING_S = 10.0, 3.5


@dataclass(frozen=True, slots=True)
class Loaded:
    """Is what became of three times as many calls as a hop can serve."""

    capacity: float
    """How many a second it serves when nobody else calls."""
    calls: Sequence[Sent]
    seen: Mapping[str, float]
    """What its places have seen."""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Loaded]:
    """Return what became of the load, by limit: each has a hop, and these mostly wait."""

    async def load(suites: Sequence[Suite]) -> list[Loaded]:
        return await asyncio.gather(*map(at_three_times_the_load, suites))

    with ExitStack() as stack:
        suites = [
            stack.enter_context(
                running_suite(tmp_path_factory.mktemp(name), (TOOL,), **ENGINE, **limit)
            )
            for name, limit in LIMITS.items()
        ]
        return dict(zip(LIMITS, asyncio.run(load(suites)), strict=True))


async def at_three_times_the_load(suite: Suite) -> Loaded:
    """Measure what a hop can do, and send three times as much, of all levels."""
    # Long calls and many places: a hop that stands still for a second finds no wave of calls of the
    # highest level at its door that the places kept for it could not take.
    places, length_s = 64, 3.2
    async with open_client(suite) as client:
        door = ToolDoor(client.channels[TOOL], places, length_s)
        send = door.send(deadline_s=15.0)
        alone = await at_once(send, [Sender(level=HIGHEST)] * places, 2 * length_s)
        took_s = max(call.ended for call in alone) - min(call.began for call in alone)

        rate = 3 * (places / length_s) / len(Criticality)
        calls = await at_rate(send, {Sender(level=level): rate for level in Criticality}, LOAD_S)
        return Loaded(len(alone) / took_s, calls, await door.seen())


@requirement("overload:highest-level-served", "overload:goodput")
@pytest.mark.parametrize("limit", LIMITS)
def test_at_three_times_the_load_the_highest_level_is_served_and_little_is_wasted(
    loaded: Mapping[str, Loaded], limit: str
) -> None:
    capacity, calls, seen = loaded[limit].capacity, loaded[limit].calls, loaded[limit].seen

    began = min(call.began for call in calls)
    done = [c for c in calls if c.served and began + SETTLING_S < c.ended < began + LOAD_S]
    served = Counter(call.sender.level for call in calls if call.served)
    sent = Counter(call.sender.level for call in calls)
    assert served[HIGHEST] >= 0.99 * sent[HIGHEST], (served, refusals(calls))
    assert len(done) >= 0.85 * capacity * (LOAD_S - SETTLING_S), (len(done), capacity)
    assert set(refusals(calls)) == {(EXHAUSTED, "LOAD_SHED", True)}
    assert served[HIGHEST] > served[Criticality.CRITICAL] > served[Criticality.SHEDDABLE]
    assert seen["inside"] == 0
    if "SIXHOP_LIMIT__MAX_INFLIGHT" in LIMITS[limit]:
        assert seen["peak"] <= 96


@requirement("overload:tenant-alone-pays", "overload:limit-holds")
async def test_a_tenant_at_ten_times_its_share_is_refused_alone_at_a_hops_door(
    tmp_path: Path,
) -> None:
    places, length_s, limit, others = 16, 0.2, 24, 4
    # A level may use four fifths of the limit to begin with; a share is a fifth of that.
    share = int(0.8 * limit / (others + 1))
    with running_suite(tmp_path, (TOOL,), **ENGINE, SIXHOP_LIMIT__MAX_INFLIGHT=str(limit)) as suite:
        async with open_client(suite) as client:
            door = ToolDoor(client.channels[TOOL], places, length_s)
            send = door.send(deadline_s=5.0)
            steady = [Sender(f"tenant-{number}") for number in range(others)] * share
            fair_rate = places / length_s / (others + 1)
            flood, calls = await asyncio.gather(
                at_rate(send, {HOT: 10 * fair_rate}, 4.0), at_once(send, steady, 4.0)
            )
            seen = await door.seen()

    assert refusals(calls) == {}
    assert set(refusals(flood)) == {(EXHAUSTED, "LOAD_SHED", True)}
    assert len(flood) == int(10 * fair_rate * 4.0)
    # It is given what the others leave, and that is more than nothing.
    assert sum(call.served for call in flood) >= 0.5 * fair_rate * 4.0
    assert seen["peak"] <= limit
    assert seen["inside"] == 0


@requirement("overload:tenant-alone-pays")
async def test_a_tenant_that_floods_a_tool_is_refused_alone_by_those_who_call_it(
    tmp_path: Path,
) -> None:
    places, length_s, others = 5, 0.2, 4
    share = places // (others + 1)
    permits = {"SIXHOP_BULKHEAD__CORE": f'{{"permits": {places}, "max_queued": 4}}'}
    with running_suite(tmp_path, (DOMAIN, TOOL), **ENGINE, **permits) as suite:
        async with open_client(suite) as client:
            door = DomainDoor(client.channels[DOMAIN], PLACES, count=places, length_s=length_s)
            send = door.send(deadline_s=10.0)
            await client.tools_known()
            steady = [Sender(f"tenant-{number}") for number in range(others)] * share
            fair_rate = places / length_s / (others + 1)
            flood, calls = await asyncio.gather(
                at_rate(send, {HOT: 10 * fair_rate}, 4.0), at_once(send, steady, 4.0)
            )
            seen = await ToolDoor(client.channels[TOOL], places, length_s).seen()

    assert refusals(calls) == {}
    assert set(refusals(flood)) == {(EXHAUSTED, "BULKHEAD_FULL", True)}
    assert sum(call.served for call in flood) >= 0.5 * fair_rate * 4.0
    assert seen["peak"] <= places


@requirement("overload:limit-holds")
async def test_waves_of_refusals_and_cancels_never_raise_the_peak_above_the_limit(
    tmp_path: Path,
) -> None:
    """grpc#41531: after a counter went below zero, rejections disabled the limit."""
    limit, wave, length_s = 6, 60, 0.05
    with running_suite(tmp_path, (TOOL,), **ENGINE, SIXHOP_LIMIT__MAX_INFLIGHT=str(limit)) as suite:
        async with open_client(suite) as client:
            door = ToolDoor(client.channels[TOOL], 4, length_s)
            ended: list[Sent] = []
            for number in range(6):
                tenants = [Sender(f"tenant-{n % 3}", HIGHEST) for n in range(wave)]
                calls = [
                    asyncio.create_task(_wave(door, sender, place))
                    for place, sender in enumerate(tenants)
                ]
                await asyncio.sleep(0.01 * number)
                for call in calls[::4]:
                    call.cancel()
                found = await asyncio.gather(*calls, return_exceptions=True)
                ended += [each for each in found if isinstance(each, Sent)]
            await client.idle_after(time.monotonic(), [TOOL])
            seen = await door.seen()
            # The tenants of the waves are the same: for three seconds they have their shares.
            all_places = [Sender(f"tenant-{n % 3}", HIGHEST) for n in range(limit)]
            again = await at_once(door.send(5.0), all_places, 10 * length_s)

    assert seen["peak"] <= limit
    assert seen["inside"] == 0
    assert Counter(call.code for call in ended)[EXHAUSTED] > wave
    # Every place came back: as many as ever are served at once, and all of them.
    assert {call.code for call in again} == {grpc.StatusCode.OK}


async def _wave(door: ToolDoor, sender: Sender, place: int) -> Sent:
    # Some end by their deadline, in the queue or at work.
    return await door.send(0.06 if place % 5 == 0 else 5.0)(sender)
