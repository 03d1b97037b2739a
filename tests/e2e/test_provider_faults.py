"""Holds every fault of the simulated provider to a whole answer or an honest error, in time.

Each fault is met by each way to ask, from the gateway's gRPC door; what the words of a question ask
for, the simulator does. What is whole is known from the simulators' seeds, who was asked from
their logs.
"""

import asyncio
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import grpc
import pytest

from services.model.sim.vocabulary import FAULTS, GROUPS
from tests.e2e.client import Client, open_client
from tests.e2e.conftest import QUIET
from tests.e2e.fault_outcomes import OUTCOMES, Asked, Case, Outcome, Way
from tests.e2e.simulators import Rescued, rescued
from tests.e2e.suite import WAIT_S, wait_until
from tests.requirements import requirement

DEADLINE_S = 8.0
"""A silent provider is given up after about three seconds of it."""
MAX_CONCURRENCY = 16
"""So many questions at a time: they wait more than they work."""
WAITING, MAX_WAITING = "silence and slowness", 32
"""The faults that do nothing but have others wait, and how many of them do so at a time."""
LOUD = ("flood", "refuse-connections")
"""Faults that would disturb the others."""
UNTIMELY = "deadline_overrun"
"""A charge that the machine may be to blame for; the deadline has checks of its own."""
SETTINGS = {
    **QUIET,
    # One retry must be possible in all of them, so that one too many would be seen.
    "SIXHOP_RETRY__MAX_TOKENS": "1000000",
    "SIXHOP_ADAPTIVE__ENABLED": "false",
    # What a hop asks for itself must not look like a call that was left behind.
    "SIXHOP_FALLBACK__BACKUP__REFRESH_INTERVAL_S": "3600",
}


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rescued]:
    """Return a suite with two simulated providers; its breakers only look on.

    How long an answer takes is known to it: before, no failure would be worth a second attempt.
    """
    with rescued(tmp_path_factory.mktemp("faults"), **SETTINGS) as started:
        good = [Case("none", way, f"skip={number}") for way in Way for number in range(6)]
        asyncio.run(played(started, good))
        yield started


async def asked(
    client: Client, case: Case, where: Rescued, deadline_s: float = DEADLINE_S
) -> Asked:
    """Ask, and return how it ended."""
    running = client.run(
        case.question,
        agent="chat",
        deadline_s=deadline_s,
        unary=case.way is Way.ASK,
        delivery=case.way.delivery,
    )
    run = await running.end()
    return await asyncio.to_thread(Asked.of, case, run, deadline_s, where)


async def played(
    where: Rescued, cases: Sequence[Case], at_a_time: int = MAX_CONCURRENCY
) -> list[Asked]:
    """Ask all, a few at a time, and return how they ended; after that nothing may be left."""
    gate = asyncio.Semaphore(at_a_time)

    async def one(client: Client, case: Case) -> Asked:
        async with gate:
            return await asked(client, case, where)

    async with open_client(where.suite) as client:
        await client.tools_known()
        ended = await asyncio.gather(*(one(client, case) for case in cases))
        await client.idle_after(time.monotonic(), client.channels)
        permits = await client.permits()
    assert set(permits.values()) == {0}, permits
    for provider in (where.primary, where.backup):
        assert provider.idle(WAIT_S), "a provider still works for a client that is gone"
    return ended


def problems(ended: Sequence[Asked], *, continues: bool = False) -> list[str]:
    """Return all that must not be."""
    return [each for one in ended for each in one.problems(continues=continues)]


def charges(where: Rescued, ended: Sequence[Asked]) -> list[str]:
    """Return what the providers charge the suite with, for these runs."""
    run_ids = {each.run.run_id for each in ended}
    found = [*where.primary.charges(run_ids), *where.backup.charges(run_ids)]
    return [charge for charge in found if not charge.startswith(UNTIMELY)]


@requirement("faults:every-one")
def test_no_fault_is_left_out() -> None:
    assert set(OUTCOMES) == set(FAULTS)


@requirement("faults:every-one", "faults:few-attempts", "failover:nothing-left")
@pytest.mark.parametrize("group", GROUPS)
async def test_each_fault_ends_in_a_whole_answer_or_an_honest_error(
    where: Rescued, group: str
) -> None:
    quiet = [name for name in GROUPS[group] if name not in LOUD]

    width = MAX_WAITING if group == WAITING else MAX_CONCURRENCY
    ended = await played(where, [Case(name, way) for name in quiet for way in Way], width)

    assert problems(ended) == []
    assert charges(where, ended) == []


@requirement("faults:every-one", "faults:few-attempts", "failover:nothing-left")
@pytest.mark.alone
async def test_a_flood_of_comments_ends_so_too(where: Rescued) -> None:
    ended = await played(where, [Case("flood", way) for way in Way], at_a_time=2)

    assert problems(ended) == []
    assert charges(where, ended) == []


@requirement("faults:every-one", "faults:few-attempts", "failover:nothing-left")
@pytest.mark.parametrize("way", Way, ids=lambda way: way.value)
async def test_a_provider_that_takes_no_more_connections_ends_so_too(
    where: Rescued, way: Way
) -> None:
    ended = await played(where, [Case("refuse-connections", way)])
    wait_until(where.primary.listens, WAIT_S, "the provider takes connections again")

    assert problems(ended) == []
    assert charges(where, ended) == []


@requirement("faults:few-attempts")
async def test_a_refusal_that_passes_is_asked_again_once_and_costs_nothing(where: Rescued) -> None:
    ended = await played(where, [Case("503", way, f"times=1&message={way.value}") for way in Way])

    assert [each.run.text for each in ended] == [each.own for each in ended]
    assert [(len(each.first), len(each.second)) for each in ended] == [(2, 0)] * len(Way)
    assert not any(each.run.degradations for each in ended)
    assert charges(where, ended) == []


@requirement("faults:every-one", "failover:live")
async def test_a_live_answer_that_is_cut_goes_on_where_the_second_model_can(
    tmp_path: Path,
) -> None:
    """With one seed the second says what the first would have said, so that a seam would show."""
    settings = {**SETTINGS, "SIXHOP_MODEL_BACKUP__PREFILL": "true"}
    cut = [name for name, outcome in OUTCOMES.items() if outcome is Outcome.CUT]
    with rescued(tmp_path, (1, 1), **settings) as where:
        ended = await played(where, [Case(name, Way.LIVE) for name in cut if name not in LOUD])

        assert problems(ended, continues=True) == []
        assert charges(where, ended) == []


PATIENT_DEADLINE_S = 30.0
SHORT_DEADLINE_S = 3.0
"""A quarter of it is left for a second model of which nobody knows yet how fast it is."""
GIVEN_UP_WITHIN_S = 6.0
ANSWERED_WITHIN_S = 11.0
KNOWN_WITHIN_S = 1.0


@requirement("faults:silence-in-time", "failover:at-once")
async def test_silence_is_given_up_in_time_and_then_known_before_anybody_waits(
    tmp_path: Path,
) -> None:
    with rescued(tmp_path) as where:
        async with open_client(where.suite) as client:
            await client.tools_known()
            short = await asked(client, Case("silent", Way.ASK, "skip=0"), where, SHORT_DEADLINE_S)
            waited = await asked_at_once(client, where, "silent")
            knowing = await asked_at_once(client, where, "silent-after-headers")

    assert short.problems() == []
    assert short.run.text == short.other, short.run.message
    for each in waited:
        assert each.problems() == []
        (given_up,) = each.first
        length_ms = float(str(given_up["closed_ms"])) - float(str(given_up["arrived_ms"]))
        assert length_ms <= GIVEN_UP_WITHIN_S * 1000
        assert each.run.elapsed_s < ANSWERED_WITHIN_S
    for each in knowing:
        assert (each.run.code, each.run.text) == (grpc.StatusCode.OK, each.other)
        assert each.first == []
        (second,) = each.second
        assert float(str(second["arrived_ms"])) / 1000 - each.run.began < KNOWN_WITHIN_S
        assert "restarted" not in each.run.kinds


async def asked_at_once(client: Client, where: Rescued, fault: str) -> list[Asked]:
    """Ask in every way at the same time."""
    cases = [Case(fault, way) for way in Way]
    return list(
        await asyncio.gather(*(asked(client, case, where, PATIENT_DEADLINE_S) for case in cases))
    )
