"""Shows a run while it runs."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from gateway.cli.console import length_text
from gateway.cli.degraded import degraded_text
from gateway.cli.events import (
    Accepted,
    Degraded,
    Event,
    Restarted,
    Routed,
    StepFinished,
    StepStarted,
    StepState,
    Thinking,
)
from gateway.cli.transcript import Step, Transcript
from services.runtime.clock import Clock

TAIL_LINES = 6
"""How much of a growing answer is shown; the whole of it follows at the end."""
THINKING_EVERY_S = 5
"""How often silence is worth a line where lines stay."""
REFRESH_PER_S = 8

_MARKS = {
    StepState.OK: ("✓", "green"),
    StepState.FAILED: ("✗", "red"),
    StepState.SKIPPED: ("–", "yellow"),
}


class Progress(Protocol):
    """Shows a run."""

    def showing(self, transcript: Transcript) -> AbstractContextManager[None]:
        """Show the transcript while the block runs."""
        ...

    def told(self, event: Event, transcript: Transcript) -> None:
        """Show what an event, which the transcript has taken in, changed."""
        ...


class SilentProgress:
    """Shows nothing."""

    def showing(self, transcript: Transcript) -> AbstractContextManager[None]:
        """Show nothing."""
        return nullcontext()

    def told(self, event: Event, transcript: Transcript) -> None:
        """Show nothing."""


class PlainProgress:
    """Writes lines, for files and pipes."""

    def __init__(self, console: Console) -> None:
        """Take where to write."""
        self._console = console

    def showing(self, transcript: Transcript) -> AbstractContextManager[None]:
        """Change nothing: lines stay."""
        return nullcontext()

    def told(self, event: Event, transcript: Transcript) -> None:
        """Write a line for what is worth one."""
        line = plain_line(event, transcript)
        if line:
            self._console.print(Text(line), soft_wrap=True)


class LiveProgress:
    """Draws on a terminal and redraws."""

    def __init__(self, console: Console, clock: Clock) -> None:
        """Take the terminal and the clock."""
        self._console = console
        self._clock = clock

    @contextmanager
    def showing(self, transcript: Transcript) -> Iterator[None]:
        """Draw while the block runs; what is left afterwards are the steps."""
        began = self._clock.now()
        spinner = Spinner("dots")

        def draw() -> RenderableType:
            return _drawing(transcript, self._clock.now() - began, spinner)

        with Live(
            console=self._console, get_renderable=draw, refresh_per_second=REFRESH_PER_S
        ) as live:
            try:
                yield
            finally:
                steps = Group(_steps(transcript), Text())
                # Live would draw once more by itself; what waits and grows is of the past now.
                live.get_renderable = lambda: steps  # type: ignore[method-assign]

    def told(self, event: Event, transcript: Transcript) -> None:
        """Leave it to the next drawing."""


def plain_line(event: Event, transcript: Transcript) -> str:
    """Return what a line says about an event; empty when it is worth none."""
    match event:
        case Accepted():
            budget = length_text(transcript.budget_s)
            return f"run {transcript.run_id} has {budget}{transcript.cut_note}"
        case Routed():
            return _routed_text(event)
        case StepStarted():
            step = transcript.step(event.step)
            return f"step {_step_title(step)} ..." if step else ""
        case StepFinished():
            step = transcript.step(event.step)
            return f"step {_step_title(step)}: {_step_end(step)}" if step else ""
        case Thinking():
            worth_it = int(event.silence_s) % THINKING_EVERY_S == 0
            return _thinking_text(event) if worth_it else ""
        case Degraded():
            return degraded_text(transcript.degradations[-1], transcript.language)
        case Restarted():
            return f"the text begins again: {event.reason}"
    return ""


def _drawing(transcript: Transcript, elapsed_s: float, spinner: Spinner) -> RenderableType:
    budget_s = transcript.budget_s
    status = (
        f"{length_text(elapsed_s)} of {length_text(budget_s)}{transcript.cut_note}"
        if budget_s
        else "connecting"
    )
    if transcript.thinking is not None:
        status += f"; {_thinking_text(transcript.thinking)}"
    spinner.update(text=Text(status, style="dim"))
    tail = "\n".join(transcript.text.splitlines()[-TAIL_LINES:])
    return Group(_steps(transcript), Text(tail), spinner)


def _steps(transcript: Transcript) -> Text:
    lines = Text()
    if transcript.routed is not None:
        lines.append(_routed_text(transcript.routed) + "\n", style="dim")
    for step in transcript.steps:
        mark, style = _MARKS.get(step.state, ("…", "dim"))
        lines.append(f"{mark} ", style=style)
        end = "" if step.state is StepState.RUNNING else f": {_step_end(step)}"
        lines.append(f"{_step_title(step)}{end}\n")
    for degraded in transcript.degradations:
        lines.append(f"! {degraded_text(degraded, transcript.language)}\n", style="yellow")
    lines.rstrip()
    return lines


def _routed_text(routed: Routed) -> str:
    if routed.reason == "requested":
        return f"agent {routed.agent}, as asked"
    if routed.reason == "uncertain":
        return f"agent {routed.agent}, because no other fits clearly"
    return f"agent {routed.agent}, {routed.margin:.3f} ahead of the next"


def _step_title(step: Step) -> str:
    return f"{step.number} {step.name}" + (f", {step.title}" if step.title else "")


def _step_end(step: Step) -> str:
    detail = f", {step.detail}" if step.detail else ""
    if step.state is StepState.SKIPPED:
        return f"skipped{detail}"
    return f"{step.state.value} after {length_text(step.elapsed_s)}{detail}"


def _thinking_text(thinking: Thinking) -> str:
    return (
        f"{thinking.hop} waits ({thinking.state}) for {length_text(thinking.silence_s)}, "
        f"{length_text(thinking.remaining_s)} left"
    )
