"""Tests how the states of hops are shown while they are watched."""

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console, Group
from rich.live import Live

from gateway.cli.dependencies import step_timeouts
from gateway.cli.health_watch import (
    ALIVE_INTERVAL_S,
    JsonWatch,
    LineWatch,
    LiveWatch,
    state_line,
)
from gateway.cli.hop_health import ASK_TIMEOUT_S, HopHealth, heard, silent
from services.runtime.clock import ManualClock
from services.runtime.config import load_config
from services.runtime.durations import to_duration
from sixhop.runtime.v1 import runtime_pb2

SICK = runtime_pb2.DependencySnapshot(
    key="tool/pdf", breaker_state=runtime_pb2.BREAKER_STATE_OPEN, breaker_reason="slow_calls"
)


def hop(name: str = "domain", *, serves: bool = True) -> HopHealth:
    """Return how a hop does that has told its state."""
    order = runtime_pb2.ShedOrder(reason="too much", remaining_duration=to_duration(9.0))
    told = runtime_pb2.GetSnapshotResponse(
        hop=name,
        pod=f"{name}-1",
        ready=serves,
        detail="" if serves else "its event loop lags",
        inflight_count=2,
        call_count=7,
        error_count=1,
        p50_latency=to_duration(0.25),
        dependencies=[SICK],
        shed=runtime_pb2.ShedSnapshot(order=order),
    )
    in_force = step_timeouts(load_config(None, {}))
    return heard(name, "127.0.0.1:7402", told, in_force, serves=serves)


def test_a_line_tells_the_state_the_numbers_and_what_is_not_as_usual() -> None:
    assert state_line(hop()).split("; ") == [
        "domain   serving",
        "2 now, 7 calls, 1 errors",
        "p50 250 ms",
        "breaker of tool/pdf open",
        "the door refuses calls up to an unknown level for 9.00 s more, by an operator: too much",
    ]


def test_a_line_of_a_hop_that_does_not_serve_says_why() -> None:
    assert state_line(hop(serves=False)).startswith(
        "domain   not serving (its event loop lags); 2 now"
    )
    assert state_line(silent("tool", "127.0.0.1:7403")) == (
        "tool     silent (no answer within 1.00 s; it is stopped, stuck or busy)"
    )


def test_lines_are_written_for_changes_only() -> None:
    console = Console(file=io.StringIO(), width=400, color_system=None)
    watch = LineWatch(console, ManualClock(3661.0))

    for cause in ("first", "interval", "change", "interval", "lost"):
        watch.told(hop(), cause)

    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert len(lines) == 3
    assert lines[0].startswith("01:01:01 domain   serving; ")


def test_programs_get_every_state_as_one_document_in_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    watch = JsonWatch(ManualClock(0.0))

    watch.told(hop(), "first")
    watch.told(silent("tool", "127.0.0.1:7403"), "lost")

    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["time"], first["cause"]) == ("1970-01-01T00:00:00.000+00:00", "first")
    assert (first["hop"], first["snapshot"]["shed"]["order"]["reason"]) == ("domain", "too much")
    assert (second["state"], second["snapshot"]) == ("silent", None)


def test_programs_get_a_state_that_is_as_it_was_now_and_then(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = ManualClock()
    watch = JsonWatch(clock)
    first, other = replace(hop(), replica=True), replace(hop(), replica=True, address="a:1")

    watch.told(first, "first")
    watch.told(other, "first")
    for _ in range(40):
        clock.advance(ALIVE_INTERVAL_S)
        watch.told(first, "interval")
    watch.told(first, "change")

    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["address"] for each in told].count("a:1") == 1
    causes = [each["cause"] for each in told if each["address"] != "a:1"]
    assert causes == ["first", "interval", "interval", "change"]


def test_a_frozen_hop_is_missed_as_soon_as_health_would_miss_it_in_every_view() -> None:
    assert ALIVE_INTERVAL_S <= ASK_TIMEOUT_S / 2


def test_a_terminal_shows_the_newest_state_of_each_hop_in_the_order_of_the_hops() -> None:
    console = Console(file=io.StringIO(), width=120, color_system=None)
    live = Live(console=console, auto_refresh=False)
    watch = LiveWatch(live, "tool.port is wrong")

    for name in ("tool", "gateway", "tool"):
        watch.told(hop(name), "change")
    for address in ("b:2", "a:1"):
        watch.told(replace(hop("domain"), address=address, replica=True), "change")

    assert isinstance(live.renderable, Group)
    console.print(live.renderable)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    rows = [line.split()[0] for line in text.splitlines() if "serving" in line]
    assert rows == ["gateway", "domain@a:1", "domain@b:2", "tool"]
    assert text.startswith("problem: tool.port is wrong\n")
