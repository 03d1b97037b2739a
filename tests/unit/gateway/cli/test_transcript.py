"""Tests what is kept of a run."""

from gateway.cli.events import (
    Accepted,
    Degraded,
    Restarted,
    StepFinished,
    StepStarted,
    StepState,
    TextDelta,
    Thinking,
)
from gateway.cli.transcript import Transcript


def test_text_before_a_restart_is_void() -> None:
    transcript = Transcript()

    for event in (TextDelta("Wro"), TextDelta("ng"), Restarted("failover"), TextDelta("Right")):
        transcript.apply(event)

    assert transcript.text == "Right"
    assert transcript.restart_count == 1


def test_a_step_runs_until_it_ends() -> None:
    transcript = Transcript()

    transcript.apply(StepStarted(1, "sql", "Query"))
    running = transcript.steps[0].state
    transcript.apply(StepFinished(1, "sql", StepState.FAILED, 0.5, "no such\ncolumn"))

    assert running is StepState.RUNNING
    assert transcript.steps[0].state is StepState.FAILED
    assert transcript.steps[0].detail == "no such column"
    assert transcript.steps[0].title == "Query"


def test_a_step_whose_beginning_was_missed_is_kept() -> None:
    transcript = Transcript()

    transcript.apply(StepFinished(7, "sql", StepState.OK, 0.5, ""))

    assert [step.number for step in transcript.steps] == [7]


def test_thinking_ends_with_the_next_event() -> None:
    transcript = Transcript()

    transcript.apply(Thinking("silent", 1.0, 20.0, "domain"))
    thinking = transcript.thinking
    transcript.apply(TextDelta("a"))

    assert thinking is not None
    assert transcript.thinking is None


def test_nothing_from_the_wire_reaches_a_terminal_as_a_command() -> None:
    transcript = Transcript()

    transcript.apply(Accepted("\x1b[31mid", 3.0))
    transcript.apply(StepStarted(1, "s\x07ql", "\x1b]0;title\x07Query\r"))
    transcript.apply(Degraded("t\x9b", "prose", "a\u202eb", 3.0, "C\x07"))
    transcript.apply(TextDelta("\x1b[2Jone\r\ntwo\tthree\x00 \u0085"))

    assert transcript.run_id == "[31mid"
    assert transcript.steps[0].name == "sql"
    assert transcript.steps[0].title == "]0;titleQuery"
    assert transcript.degradations == [Degraded("t", "prose", "ab", 3.0, "C")]
    assert transcript.text == "[2Jone\ntwo\tthree "
