"""Tests what is shown of a run while it runs."""

import io

import pytest
from rich.console import Console

from gateway.cli import events
from gateway.cli.progress import LiveProgress, plain_line
from gateway.cli.transcript import Transcript
from services.runtime.clock import ManualClock

TOLD: list[events.Event] = [
    events.Accepted("run-1", 30.0),
    events.Routed("reports", 0.9, 0.05, "nearest"),
    events.StepStarted(1, "sql", "Query [the] orders"),
    events.StepFinished(1, "sql", events.StepState.OK, 0.123, ""),
    events.StepStarted(2, "pdf", "Report"),
    events.StepFinished(2, "pdf", events.StepState.SKIPPED, 0.0, "no time"),
    events.Degraded("skip", "pdf", "no time"),
]


def test_lines_tell_the_agent_each_step_and_what_is_lesser() -> None:
    transcript = Transcript()
    lines = []

    for event in TOLD:
        transcript.apply(event)
        lines.append(plain_line(event, transcript))

    assert lines == [
        "run run-1 has 30.00 s",
        "agent reports, 0.050 ahead of the next",
        "step 1 sql, Query [the] orders ...",
        "step 1 sql, Query [the] orders: ok after 123 ms",
        "step 2 pdf, Report ...",
        "step 2 pdf, Report: skipped, no time",
        "degraded: pdf left out, because no time",
    ]


def test_the_first_line_tells_that_the_gateway_cut_the_deadline() -> None:
    transcript = Transcript(run_id="run-1", budget_s=120.0, asked_s=600.0)

    line = plain_line(events.Accepted("run-1", 120.0), transcript)

    assert line == "run run-1 has 120 s, cut by the gateway from 600 s"


@pytest.mark.parametrize(("silence_s", "told"), [(1.0, False), (5.0, True), (7.0, False)])
def test_where_lines_stay_only_every_fifth_second_of_silence_is_told(
    silence_s: float, told: bool
) -> None:
    event = events.Thinking("silent", silence_s, 20.0, "domain")

    assert bool(plain_line(event, Transcript())) is told


def test_a_terminal_keeps_the_steps_and_forgets_the_growing_text(clock: ManualClock) -> None:
    screen = io.StringIO()
    console = Console(file=screen, width=80, force_terminal=True, color_system=None, markup=False)
    transcript = Transcript()
    progress = LiveProgress(console, clock)

    with progress.showing(transcript):
        for event in (*TOLD, events.TextDelta("half an ans")):
            transcript.apply(event)
            progress.told(event, transcript)

    last = screen.getvalue().split("\x1b[2K")[-1]
    assert "✓ 1 sql, Query [the] orders: ok after 123 ms" in last
    assert "– 2 pdf, Report: skipped, no time" in last
    assert "half an ans" not in last
