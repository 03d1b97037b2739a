"""Keeps what a run has told so far."""

from dataclasses import dataclass, field

from gateway.cli.console import clean, length_text, one_line
from gateway.cli.events import (
    Accepted,
    Degraded,
    Event,
    Finished,
    Restarted,
    Routed,
    StepFinished,
    StepStarted,
    StepState,
    TextDelta,
    Thinking,
)


@dataclass(slots=True)
class Step:
    """Is one step of the agent."""

    number: int
    name: str
    title: str
    state: StepState = StepState.RUNNING
    elapsed_s: float = 0.0
    detail: str = ""
    """Why it failed or was skipped."""


@dataclass(slots=True)
class Transcript:
    """Grows with every event; all of its text is safe to show."""

    language: str = "en"
    """The language of the question, `en` or `zh`."""
    run_id: str = ""
    budget_s: float = 0.0
    asked_s: float = 0.0
    """The deadline that was asked for, when the gateway cut it to the budget; else 0."""
    routed: Routed | None = None
    steps: list[Step] = field(default_factory=list)
    thinking: Thinking | None = None
    """What is being waited for now; None when something else happened since."""
    text: str = ""
    degradations: list[Degraded] = field(default_factory=list)
    restart_count: int = 0
    finished: Finished | None = None

    @property
    def cut_note(self) -> str:
        """Return the note that the gateway gave less than was asked; empty when it did not."""
        return f", cut by the gateway from {length_text(self.asked_s)}" if self.asked_s else ""

    def apply(self, event: Event) -> None:
        """Take in one event."""
        self.thinking = None
        match event:
            case Accepted(run_id, budget_s):
                self.run_id, self.budget_s = one_line(run_id), budget_s
            case Routed():
                self.routed = event
            case StepStarted(number, name, title):
                self.steps.append(Step(number, one_line(name), one_line(title)))
            case StepFinished():
                self._finish(event)
            case Thinking():
                self.thinking = event
            case TextDelta(text):
                self.text += clean(text)
            case Degraded():
                self.degradations.append(_safe(event))
            case Restarted():
                self.text = ""
                self.restart_count += 1
            case Finished():
                self.finished = event

    def step(self, number: int) -> Step | None:
        """Return a step by its number."""
        return next((step for step in self.steps if step.number == number), None)

    def _finish(self, event: StepFinished) -> None:
        step = self.step(event.step)
        if step is None:
            step = Step(event.step, one_line(event.name), "")
            self.steps.append(step)
        step.state = event.state
        step.elapsed_s = event.elapsed_s
        step.detail = one_line(event.detail)


def _safe(degraded: Degraded) -> Degraded:
    return Degraded(
        one_line(degraded.mechanism),
        one_line(degraded.part),
        one_line(degraded.reason),
        degraded.age_s,
        one_line(degraded.error_reason),
    )
