"""Says how a run must end whose provider fails in each way, and holds runs to that."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import grpc

from sixhop.type.v1 import run_pb2
from tests.e2e.client import Ended
from tests.e2e.simulators import Rescued

MAX_ATTEMPTS = 2
CUT_MARK = " …"
"""What an agent adds to a text that ends at its token limit."""


class Way(Enum):
    """Names how a client asks."""

    ASK = "ask"
    RESTARTABLE = "restartable"
    BUFFERED = "buffered"
    LIVE = "live"

    @property
    def delivery(self) -> "run_pb2.Delivery.ValueType":
        """Return what is said of it on the wire."""
        if self is Way.ASK:
            return run_pb2.DELIVERY_UNSPECIFIED
        return run_pb2.Delivery.Value(f"DELIVERY_{self.name}")


class Outcome(Enum):
    """Names how a run must end."""

    OWN = "the first model's whole answer, which nothing lessens"
    LIMITED = "the first model's answer, said to be cut at its limit"
    UNSEEN = "the second model's whole answer, before anybody saw a word of the first"
    CUT = "the second model's whole answer, in place of a part of the first one's"
    LOST = "a part of the first model's answer, and an error that says that it was cut"
    CONTINUED = "the first model's answer, which the second one has gone on with to its end"
    TOLD = "an error that another model would not cure"


def _all(outcome: Outcome, names: str) -> dict[str, Outcome]:
    return dict.fromkeys(names.split(), outcome)


OUTCOMES: dict[str, Outcome] = {
    **_all(Outcome.OWN, "none at-once reasoning slow deaf prefill-refusal bad-arguments"),
    **_all(Outcome.OWN, "no-usage no-done duplicate-finish duplicate-done"),
    **_all(Outcome.OWN, "stall-after-finish stall-before-terminator"),
    **_all(Outcome.OWN, "reset-after-finish reset-before-terminator"),
    **_all(Outcome.OWN, "fin-after-finish fin-before-terminator"),
    **_all(Outcome.OWN, "crlf cr mixed-lines bom one-byte split-utf8 no-space multiline"),
    **_all(Outcome.OWN, "extra-events separators framing wrong-charset"),
    **_all(Outcome.LIMITED, "length"),
    **_all(Outcome.UNSEEN, "400 401 402 403 404 408 409 422 429 500 502 503 504 529"),
    **_all(Outcome.UNSEEN, "retry-after retry-date redirect flapping bursts refuse-connections"),
    **_all(Outcome.UNSEEN, "silent silent-after-headers keep-alive-forever slow-headers"),
    **_all(Outcome.UNSEEN, "drip-headers slow-first-token drip"),
    **_all(Outcome.UNSEEN, "reset-before-headers reset-after-headers"),
    **_all(Outcome.UNSEEN, "fin-before-headers fin-after-headers eof-at-once"),
    **_all(Outcome.UNSEEN, "html empty json wrong-type"),
    **_all(Outcome.CUT, "stall stall-mid-event stall-mid-chunk stall-keep-alive flood"),
    **_all(Outcome.CUT, "reset reset-mid-event reset-mid-chunk fin fin-mid-event fin-mid-chunk"),
    **_all(Outcome.CUT, "eof eof-unframed done-without-finish no-finish overloaded odd-finish"),
    **_all(Outcome.CUT, "malformed not-json not-an-object error-event error-text error-object"),
    **_all(Outcome.CUT, "event-error no-choices choices-null"),
    **_all(Outcome.TOLD, "context 413 content-refused content-filter"),
}
"""By fault; one that is missing has no test."""
SILENT = frozenset(
    "silent silent-after-headers keep-alive-forever slow-headers drip-headers slow-first-token "
    "drip".split()
)
"""Nobody who is silent is asked twice: that would take the second model's time."""
RULES = {
    "flapping": "flapping?up_s=0&down_s=1000",
    "bursts": "bursts?burst_enter=1&burst_leave=0",
    "refuse-connections": "refuse-connections?refuse_s=0.5",
}
"""How a fault is asked for where its name alone would leave it to chance, or take longer."""


@dataclass(frozen=True)
class Case:
    """Is one question."""

    fault: str
    way: Way
    changes: str = ""
    """More knobs of the fault."""

    @property
    def rule(self) -> str:
        """Return how the fault is asked for."""
        return RULES.get(self.fault, self.fault) + (f"?{self.changes}" if self.changes else "")

    @property
    def question(self) -> str:
        """Return what is asked; every question has an answer of its own."""
        return f"What now, if {self.way.value}? [sim: {self.rule}]"

    def outcome(self, *, continues: bool) -> Outcome:
        """Return how it must end, where the second model may go on from what the first said."""
        outcome = OUTCOMES[self.fault]
        if outcome is Outcome.CUT and self.way is Way.LIVE:
            return Outcome.CONTINUED if continues else Outcome.LOST
        return outcome


@dataclass(frozen=True)
class Asked:
    """Is a case that has ended, with what both providers saw of it."""

    case: Case
    run: Ended
    deadline_s: float
    own: str
    """What the first model's whole answer is."""
    other: str
    """What the second one's is."""
    first: list[dict[str, object]]
    """The requests that reached the first provider."""
    second: list[dict[str, object]]

    @classmethod
    def of(cls, case: Case, run: Ended, deadline_s: float, where: Rescued) -> "Asked":
        """Return a run with what is known of it."""
        return cls(
            case,
            run,
            deadline_s,
            where.primary.whole(case.question, case.rule),
            where.backup.whole(case.question),
            where.primary.requests(run.run_id),
            where.backup.requests(run.run_id),
        )

    @property
    def streamed(self) -> bool:
        """Return whether it came as events."""
        return self.case.way is not Way.ASK

    @property
    def ended_well(self) -> bool:
        """Return whether the client was given an answer."""
        return self.run.code is grpc.StatusCode.OK

    def problems(self, *, continues: bool = False) -> list[str]:
        """Return all that must not be.

        Args:
            continues: whether the second model goes on from a text that it is given.
        """
        outcome = self.case.outcome(continues=continues)
        found = [*self._always(outcome), *self._by_outcome(outcome)]
        return [f"{self.case.rule} {self.case.way.value}: {each}" for each in found]

    def _always(self, outcome: Outcome) -> Iterator[str]:
        """Yield what must not be whatever a provider does."""
        run = self.run
        if run.elapsed_s > self.deadline_s:
            yield f"took {run.elapsed_s:.2f} s of {self.deadline_s:g} s"
        refused = outcome in (Outcome.UNSEEN, Outcome.TOLD) and self.case.fault not in SILENT
        most = MAX_ATTEMPTS if refused else 1
        if not 1 <= len(self.first) <= most:
            yield f"{len(self.first)} attempts at the first provider, {most} at most"
        if len(self.second) > 1:
            yield f"{len(self.second)} attempts at the second provider, which is well"
        yield from self._answer_problems() if self.ended_well else self._error_problems()
        yield from self._event_problems() if self.streamed else ()

    def _answer_problems(self) -> Iterator[str]:
        run = self.run
        writers = {self.own: self.first, self.own + CUT_MARK: self.first, self.other: self.second}
        if run.text not in writers:
            yield f"gave {run.text!r}, which is nobody's whole answer"
            return
        writer = writers[run.text][-1]
        finished = run.answer if run.answer is not None else run.events[-1].finished
        if finished.model != writer["model"]:
            yield f"names {finished.model}, and {writer['model']} wrote"
        counted = finished.usage.output_token_count
        if not finished.usage.estimated and counted != writer["tokens_written"]:
            yield f"tells {counted} tokens of {writer['tokens_written']}"
        marked = [each.mechanism for each in run.degradations]
        if marked != {self.own: [], self.other: ["backup"]}.get(run.text, ["partial"]):
            yield f"is said to be degraded by {marked}"

    def _error_problems(self) -> Iterator[str]:
        run = self.run
        if not run.reason or not {"hop", "cause", "remainingMs"} <= set(run.details):
            yield f"{run.code.name} {run.message!r} with the details {run.reason} {run.details}"
        if "finished" in run.kinds:
            yield "is said to be finished, and failed"

    def _event_problems(self) -> Iterator[str]:
        way, kinds = self.case.way, self.run.kinds
        if kinds.count("restarted") > (1 if way is Way.RESTARTABLE else 0):
            yield f"was restarted in {kinds}"
        if way is Way.BUFFERED and "text_delta" in kinds[:-2]:
            yield f"gave text before the end: {kinds}"
        if way is Way.BUFFERED and not self.ended_well and "text_delta" in kinds:
            yield "gave text and failed"
        void, text = "", ""
        for event in self.run.events:
            if event.HasField("restarted"):
                void, text = text, ""
            text += event.text_delta.text
        if not self.own.startswith(void):
            yield f"took {void!r} back, which the first model did not write"
        if not self.ended_well and not self.own.startswith(text):
            yield f"gave {text!r}, which the first model did not write"

    def _by_outcome(self, outcome: Outcome) -> Iterator[str]:
        """Yield how it ended otherwise than it should have."""
        run, second = self.run, len(self.second)
        restarted = "restarted" in run.kinds
        match outcome:
            case Outcome.OWN:
                holds = run.text == self.own and not second
            case Outcome.LIMITED:
                holds = run.text == self.own + CUT_MARK and not second
            case Outcome.UNSEEN:
                holds = run.text == self.other and not restarted
            case Outcome.CUT:
                holds = run.text == self.other
                holds = holds and restarted == (self.case.way is Way.RESTARTABLE)
            case Outcome.CONTINUED:
                holds = run.text == self.own and second == 1
            case Outcome.LOST:
                holds = run.details.get("cause") == "cut" and bool(run.text) and not second
            case Outcome.TOLD:
                holds = not self.ended_well and not second
        if not holds:
            told = run.message or run.text
            yield f"is not {outcome.value}, but {run.code.name}: {told} {run.details} {run.kinds}"
