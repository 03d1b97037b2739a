"""Reads who was ejected, and holds it to who was sick."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from tests.e2e.mesh.house import House
from tests.e2e.suite import WAIT_S, wait_until

ENFORCED = "outlier_detection.ejections_enforced_total"
MOST_FAILURES = 10
"""So many calls to a sick pod may fail until the sidecar that sends them has ejected it."""


@dataclass(frozen=True, slots=True)
class Before:
    """Is what the sidecars had counted before a run."""

    counts: Mapping[tuple[str, str], int]
    """By hop and calling sidecar."""


def counts(house: House) -> Before:
    """Return how often each sidecar has ejected a pod of each hop so far."""
    return Before(
        {
            (hop, proxy.name): proxy.counts(house.services[hop].name, ENFORCED)[ENFORCED]
            for hop in house.pods
            for proxy in house.callers(hop)
        }
    )


def assert_well_stay(house: House, before: Before, sick: Mapping[str, Set[str]]) -> None:
    """Make sure that no sidecar has ejected a healthy pod since.

    Args:
        house: the mesh.
        before: what was counted before.
        sick: the names of the pods of each hop that were sick.

    Raises:
        AssertionError: one has; names all of them.
    """
    now, problems = counts(house), []
    for hop in house.pods:
        for proxy, names in house.ejected(hop).items():
            healthy = names - sick.get(hop, set())
            problems += [f"{proxy} has ejected {name}, which is well" for name in sorted(healthy)]
            # One that had been ejected, and is back, or out of the endpoints, counts as well.
            count = now.counts[hop, proxy] - before.counts[hop, proxy]
            if count > len(sick.get(hop, set())):
                problems.append(f"{proxy} has ejected {count} pods of {hop}")
    assert not problems, problems


def wait_ejected(house: House, hop: str, name: str) -> None:
    """Wait until every sidecar that calls a hop has ejected a pod.

    Raises:
        TimeLimitError: one has not.
    """
    # A second ejection shortly after another takes a sidecar up to a second.
    wait_until(
        lambda: all(name in names for names in house.ejected(hop).values()),
        WAIT_S,
        f"all callers of {hop} have ejected {name}: {house.ejected(hop)}",
    )


def failures(house: House, hop: str, port: int) -> Sequence[int]:
    """Return how many calls to a pod have failed, for each sidecar that calls it."""
    return [seen[port].failed_count for seen in house.endpoints(hop).values() if port in seen]
