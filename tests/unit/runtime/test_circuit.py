"""Holds the holder of a breaker's state to telling the truth at the right time."""

from services.runtime.circuit import BreakerState, Circuit


def test_a_circuit_begins_closed_and_tells_nothing_of_it() -> None:
    told: list[tuple[BreakerState, BreakerState]] = []

    circuit = Circuit("tool/sql", lambda old, new: told.append((old, new)))

    assert circuit.state is BreakerState.CLOSED
    assert told == []


def test_a_listener_that_looks_sees_the_new_state() -> None:
    """The holder's own methods tell of a change before they make it."""
    seen: list[tuple[BreakerState, BreakerState, BreakerState]] = []
    circuit = Circuit("tool/sql", lambda old, new: seen.append((old, new, circuit.state)))

    for state in (BreakerState.OPEN, BreakerState.HALF_OPEN, BreakerState.CLOSED):
        circuit.move(state)

    assert seen == [
        (BreakerState.CLOSED, BreakerState.OPEN, BreakerState.OPEN),
        (BreakerState.OPEN, BreakerState.HALF_OPEN, BreakerState.HALF_OPEN),
        (BreakerState.HALF_OPEN, BreakerState.CLOSED, BreakerState.CLOSED),
    ]
