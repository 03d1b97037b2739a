"""Is what a run tells its reader, as events in order, and what it says of its own quality."""

from collections.abc import Iterable

from services.domain import wording
from services.domain.delivery import Delivery
from services.domain.events import (
    Degraded,
    Event,
    EventBuffer,
    Restarted,
    StepFinished,
    StepStarted,
    StepState,
    TextDelta,
)
from services.runtime.call import Degradation, Fallback
from services.runtime.conversation import ToolCall
from services.runtime.errors import DependencyFailedError, Origin
from services.runtime.generation import Wait
from services.runtime.telemetry import ANSWER_DEGRADED, STEP_FAILED, STEP_SKIPPED, get_logger
from services.runtime.topology import MODEL

MAX_STEPS = 32
"""An agent that takes more steps than this is in a loop."""


class Telling:
    """Keeps what a run has told. Its events are read by the service from `events`."""

    def __init__(self, language: str, delivery: Delivery = Delivery.RESTARTABLE) -> None:
        """Take the language to speak, `en` or `zh`, and when text reaches its reader."""
        self.language = language
        self.delivery = delivery
        self.events = EventBuffer()
        self.degraded_parts: list[str] = []
        """What came from a fallback, in order."""
        self.missing_parts: list[str] = []
        """What was left out, in order."""
        self._said: list[str] = []
        self._asked_for: list[ToolCall] = []
        self._ages_s: list[float] = []
        self._steps = 0
        self._log = get_logger()

    def say(self, text: str) -> None:
        """Add text to the answer."""
        if not text:
            return
        self._said.append(text)
        if self.delivery is not Delivery.BUFFERED:
            self._put(TextDelta(text))

    def ask_for(self, calls: Iterable[ToolCall]) -> None:
        """Say which of the caller's tools the model wants to have executed; after all text."""
        for call in calls:
            self._asked_for.append(call)
            if self.delivery is not Delivery.BUFFERED:
                self._put(call)

    def model_waits(self, wait: Wait) -> None:
        """Say that the model hop waits for its provider."""
        self._put(wait)

    def say_and_mark(self, text: str) -> None:
        """Add text to the answer, and whether it was made of earlier answers."""
        self.say("\n\n".join(part for part in (text, self.stale_note()) if part))

    @property
    def said(self) -> str:
        """Return the text so far."""
        return "".join(self._said)

    @property
    def restartable(self) -> bool:
        """Return whether text that was said can be taken back."""
        return self.delivery is not Delivery.LIVE

    def restart(self, reason: str) -> None:
        """Void the text and the tool calls so far: what follows replaces them.

        Raises:
            DependencyFailedError: the reader has it for good.
        """
        if not self.restartable and (self._said or self._asked_for):
            raise DependencyFailedError(
                MODEL,
                f"the answer was cut, because what was said of it cannot be taken back: {reason}",
                cause="cut",
                origin=Origin(MODEL, code="OK", reason="NOT_TAKEN_BACK"),
            )
        self._said.clear()
        self._asked_for.clear()
        if self.delivery is Delivery.RESTARTABLE:
            self._put(Restarted(reason))

    def release(self) -> None:
        """Give the reader what was kept until the run has ended well."""
        if self.delivery is Delivery.BUFFERED:
            for text in self._said:
                self._put(TextDelta(text))
            for call in self._asked_for:
                self._put(call)

    def degraded(
        self, *, mechanism: str, part: str, reason: str, age_s: float = 0.0, error_reason: str = ""
    ) -> None:
        """Say that a part of the answer is a lesser one.

        Args:
            mechanism: the fallback: `cache`, `backup`, `default`, `template`, `extract`,
                `partial`, `skip`.
            part: the part, such as `prose`.
            reason: why the better way was not taken, for people.
            age_s: how old the part is, in seconds; 0 for one that was made for this run.
            error_reason: the reason of the error behind it, for machines.
        """
        self.degraded_parts.append(part)
        if age_s > 0:
            self._ages_s.append(age_s)
        self._log.info(
            ANSWER_DEGRADED, mechanism=mechanism, part=part, reason=reason, age_s=round(age_s, 1)
        )
        self._put(Degraded(mechanism, part, reason, age_s, error_reason))

    def skipped(self, name: str, *, title: str, reason: str) -> None:
        """Say that a step was not tried, and why."""
        step = self._begin(name, title)
        self._log.info(STEP_SKIPPED, step=name, reason=reason)
        self._put(StepFinished(step, name, StepState.SKIPPED, 0.0, reason))

    def stale_note(self) -> str:
        """Return the sentence that marks a text made of earlier answers; empty for a fresh one."""
        return wording.stale_note(self._ages_s, self.language)

    def _begin(self, name: str, title: str) -> int:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise RuntimeError(f"the agent took more than {MAX_STEPS} steps; it is in a loop")
        self._put(StepStarted(self._steps, name, title))
        return self._steps

    def _end(self, step: int, name: str, elapsed_s: float, given: Degradation | None) -> None:
        """Say how a step ended whose agent can go on."""
        if given is None:
            self._put(StepFinished(step, name, StepState.OK, elapsed_s))
        elif given.mechanism in (Fallback.CACHE, Fallback.DEFAULT):
            detail = wording.given_instead(given, self.language)
            self._put(StepFinished(step, name, StepState.OK, elapsed_s, detail))
        else:
            self._log.warning(STEP_FAILED, step=name, reason=given.reason, problem=given.message)
            detail = wording.why(name, given, self.language)
            self._put(StepFinished(step, name, StepState.FAILED, elapsed_s, detail))

    def _fail(self, step: int, name: str, elapsed_s: float, reason: str, problem: str) -> None:
        """Say that a step failed which its agent cannot do without."""
        self._log.warning(STEP_FAILED, step=name, reason=reason, problem=problem)
        detail = wording.failed(name, problem, self.language)
        self._put(StepFinished(step, name, StepState.FAILED, elapsed_s, detail))

    def _put(self, event: Event) -> None:
        self.events.put(event)
