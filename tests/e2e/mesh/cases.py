"""Holds the table of what may be sick, and runs each row once: who is ejected, and what was heard.

Every row says what must be true as an assertion, so that a test and the command line hold the mesh
to the same.
"""

import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from services.runtime.topology import DOMAIN, TOOL
from tests.e2e.mesh.calls import Clients, Told, tally
from tests.e2e.mesh.house import EVERY, House
from tests.e2e.mesh.kubelet import looking_after
from tests.e2e.mesh.mending import mend
from tests.e2e.mesh.pods import Pod
from tests.e2e.mesh.signs import (
    MOST_FAILURES,
    assert_well_stay,
    counts,
    failures,
    wait_ejected,
)
from tests.listeners import full_listener
from tests.waiting import until

DEADLINE_S = 2.0
LONG_S = 60.0
"""Longer than anybody waits."""
HURRIED_S = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
"""Deadlines that a tool which takes 0.3 s cannot keep, four hops behind the client."""
BATCH, MOST_BATCHES = 36, 8
CLIENTS = 6
"""So many ask at a time: each domain pod has about three calls under way."""
PLACES = 8
"""So many calls a tool pod serves at once."""
CROWD = 40
"""So many clients are too many for three of them."""
LEAST_SERVED = 0.97
"""The part of the clients that get an answer, be it a lesser one, while a leaf is sick."""
BOUND_S = 20.0
SETTINGS: Mapping[str, Mapping[str, str]] = {
    # A thirtieth and a tenth of what they are: tests wait for both.
    EVERY: {"SIXHOP_SELF_EJECTION__EJECTION_S": "3"},
    TOOL: {"SIXHOP_LIMIT__MAX_INFLIGHT": str(PLACES)},
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """Tells what one run of a case came to."""

    told: Sequence[Told]
    """What clients heard while somebody was sick."""
    afterwards: Sequence[Told] = ()
    """What they heard once the sick pod was avoided."""
    failures: Sequence[int] = ()
    """How many calls to the sick pod failed, for each sidecar that calls it."""

    def __str__(self) -> str:
        """Return it for people."""
        parts = [", ".join(f"{name} {count}" for name, count in tally(self.told).items())]
        if self.afterwards:
            parts.append(f"then {dict(tally(self.afterwards))}")
        if self.failures:
            parts.append(f"failed at the sick pod {list(self.failures)}")
        return "; ".join(parts)


Case = Callable[[House, Clients], Awaitable[Outcome]]


async def run(case: Case, house: House, clients: Clients) -> Outcome:
    """Run a case once, on a mesh that is well before and after.

    Raises:
        AssertionError: what must be true is not.
    """
    await mend(house, clients, "leaf", "bare", "heavy")
    try:
        return await case(house, clients)
    finally:
        for pod in house.all_pods:
            pod.child.send(signal.SIGCONT)
            pod.feel()
        for hop in house.pods:
            house.publish_all(hop)


async def slow_leaf(house: House, clients: Clients) -> Outcome:
    """Have one tool pod of three be slow."""
    return await _one_sick_leaf(house, clients, length_s=LONG_S)


async def unavailable_leaf(house: House, clients: Clients) -> Outcome:
    """Have one tool pod of three answer UNAVAILABLE."""
    return await _one_sick_leaf(house, clients, fails=True)


async def _one_sick_leaf(house: House, clients: Clients, **mood: object) -> Outcome:
    before, sick = counts(house), house.pods[TOOL][0]
    sick.feel(**mood)
    told = await _until_ejected(house, clients, "leaf", sick)
    failed = failures(house, TOOL, sick.port)
    afterwards = await clients.ask_often("leaf", BATCH, DEADLINE_S, width=CLIENTS)
    assert_well_stay(house, before, {TOOL: {sick.name}})
    assert max(failed) <= MOST_FAILURES, failed
    assert sum(each.served for each in told) >= LEAST_SERVED * len(told), tally(told)
    assert all(each.served and not each.degraded for each in afterwards), tally(afterwards)
    return Outcome(told, afterwards, failed)


async def _until_ejected(house: House, clients: Clients, tool: str, sick: Pod) -> list[Told]:
    told: list[Told] = []
    for _ in range(MOST_BATCHES):
        told += await clients.ask_often(tool, BATCH, DEADLINE_S, width=CLIENTS)
        if all(sick.name in names for names in house.ejected(TOOL).values()):
            break
    wait_ejected(house, TOOL, sick.name)
    return told


async def slow_outage(house: House, clients: Clients) -> Outcome:
    """Have all tool pods be slow: no relay may be ejected for that."""
    return await _all_sick_leaves(house, clients, length_s=LONG_S)


async def unavailable_outage(house: House, clients: Clients) -> Outcome:
    """Have all tool pods answer UNAVAILABLE: no relay may be ejected for that."""
    return await _all_sick_leaves(house, clients, fails=True)


async def _all_sick_leaves(house: House, clients: Clients, **mood: object) -> Outcome:
    before, leaves = counts(house), house.pods[TOOL]
    begun = sum(pod.arrival_count for pod in leaves)
    for pod in leaves:
        pod.feel(**mood)
    told = await clients.ask_often("bare", 2 * BATCH, DEADLINE_S, width=CLIENTS)
    attempts = sum(pod.arrival_count for pod in leaves) - begun
    assert_well_stay(house, before, {TOOL: {pod.name for pod in leaves}})
    assert not any(each.served for each in told)
    # Who says that the breaker is open is the domain hop.
    assert {each.origin for each in told} <= {TOOL, DOMAIN}, tally(told)
    # Half of three pods is one, so that the other two still get what comes.
    assert all(len(names) <= 1 for names in house.ejected(TOOL).values())
    assert 0 < attempts <= 1.2 * len(told), attempts
    return Outcome(told)


async def slow_relay(house: House, clients: Clients) -> Outcome:
    """Have one domain pod of two be slow by itself.

    It streams, so that no sidecar sees how its calls end: the pod has to leave by itself.
    """
    before, sick = counts(house), house.pods[DOMAIN][0]
    sick.feel(length_s=LONG_S)
    async with looking_after(house, DOMAIN) as (kubelet,):
        told: list[Told] = []
        for _ in range(MOST_BATCHES):
            told += await clients.ask_often("leaf", BATCH, DEADLINE_S, width=CLIENTS)
            if sick.name not in kubelet.ready:
                break
        assert list(kubelet.ready) == [house.pods[DOMAIN][1].name]
        assert_well_stay(house, before, {})
        afterwards = await clients.ask_often("leaf", BATCH, DEADLINE_S, width=CLIENTS)
        sick.feel()
        await until(lambda: sick.name in kubelet.ready, timeout_s=BOUND_S)
    assert all(each.served for each in afterwards)
    return Outcome(told, afterwards)


async def overloaded_leaves(house: House, clients: Clients) -> Outcome:
    """Have more clients than the tool pods have places: who refuses is well."""
    before = counts(house)
    told = await clients.ask_often("heavy", 3 * CROWD, DEADLINE_S, width=CROWD)
    assert_well_stay(house, before, {})
    assert any(each.reason == "DEPENDENCY_OVERLOADED" for each in told), tally(told)
    return Outcome(told)


async def hung_leaf(house: House, clients: Clients) -> Outcome:
    """Have one tool pod stand still: it is found by its readiness."""
    before, sick = counts(house), house.pods[TOOL][0]
    async with looking_after(house, TOOL) as (kubelet,):
        sick.child.send(signal.SIGSTOP)
        told: list[Told] = []
        for _ in range(MOST_BATCHES):
            told += await clients.ask_often("leaf", BATCH, DEADLINE_S, width=CLIENTS)
            if sick.name not in kubelet.ready:
                break
        assert sick.name not in kubelet.ready
        assert_well_stay(house, before, {TOOL: {sick.name}})
        afterwards = await clients.ask_often("leaf", BATCH, DEADLINE_S, width=CLIENTS)
        sick.child.send(signal.SIGCONT)
        await until(lambda: sick.name in kubelet.ready, timeout_s=BOUND_S)
    return Outcome(told, afterwards)


async def blackholed_address(house: House, clients: Clients) -> Outcome:
    """Have an address among the tool pods where nobody answers, not even the system."""
    before = counts(house)
    with full_listener() as port:
        house.publish_all(TOOL, port)
        told: list[Told] = []
        for _ in range(MOST_BATCHES):
            told += await clients.ask_often("bare", BATCH, DEADLINE_S, width=CLIENTS)
            if all(str(port) in names for names in house.ejected(TOOL).values()):
                break
        wait_ejected(house, TOOL, str(port))
        failed = failures(house, TOOL, port)
        assert_well_stay(house, before, {TOOL: {str(port)}})
    assert all(each.served for each in told), tally(told)
    return Outcome(told, failures=failed)


async def hurried_clients(house: House, clients: Clients) -> Outcome:
    """Have clients want answers sooner than healthy pods can give them."""
    before = counts(house)
    told = await clients.ask_often("heavy", 2 * BATCH, HURRIED_S, width=CLIENTS)
    assert_well_stay(house, before, {})
    assert not any(each.served for each in told), tally(told)
    return Outcome(told)


CASES: Mapping[str, Case] = {
    "one slow leaf": slow_leaf,
    "one UNAVAILABLE leaf": unavailable_leaf,
    "all leaves slow": slow_outage,
    "all leaves UNAVAILABLE": unavailable_outage,
    "a relay slow by itself": slow_relay,
    "overloaded leaves": overloaded_leaves,
    "a hung leaf": hung_leaf,
    "a blackholed address": blackholed_address,
    "clients in a hurry": hurried_clients,
}
