"""Defines what a run tells its client, in plain types; lengths in seconds."""

from dataclasses import dataclass, field
from enum import StrEnum


class StepState(StrEnum):
    """Tells how a step stands."""

    RUNNING = "running"
    OK = "ok"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Accepted:
    """The gateway has taken the run."""

    run_id: str
    budget_s: float


@dataclass(frozen=True, slots=True)
class Routed:
    """An agent was chosen."""

    agent: str
    score: float
    margin: float
    reason: str


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A step began."""

    step: int
    name: str
    title: str


@dataclass(frozen=True, slots=True)
class StepFinished:
    """A step ended."""

    step: int
    name: str
    state: StepState
    elapsed_s: float
    detail: str


@dataclass(frozen=True, slots=True)
class Thinking:
    """A hop waits inside its limits."""

    state: str
    silence_s: float
    remaining_s: float
    hop: str


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More text of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Degraded:
    """A part of the answer came from a fallback."""

    mechanism: str
    part: str
    reason: str
    age_s: float = 0.0
    """How old the part is; above zero for an earlier answer."""
    error_reason: str = ""
    """The reason of the error behind it, for programs; empty when there was none."""


@dataclass(frozen=True, slots=True)
class Restarted:
    """The text so far is void."""

    reason: str


@dataclass(frozen=True, slots=True)
class Artefact:
    """A file of the answer."""

    name: str
    media_type: str
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Usage:
    """What the generations cost."""

    input_token_count: int
    output_token_count: int
    estimated: bool


@dataclass(frozen=True, slots=True)
class Finished:
    """The run is complete."""

    agent: str
    model: str
    usage: Usage
    artefacts: tuple[Artefact, ...]
    degraded: bool
    missing_parts: tuple[str, ...]
    sources: tuple[str, ...]


Event = (
    Accepted
    | Routed
    | StepStarted
    | StepFinished
    | Thinking
    | TextDelta
    | Degraded
    | Restarted
    | Finished
)


@dataclass(frozen=True, slots=True)
class DataFile:
    """Is data that a question brings along; without content it names a dataset of the suite."""

    name: str
    content: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Is what the user asks."""

    text: str
    language: str = ""
    """`en`, `zh`, or empty to follow the text."""
    agent: str = ""
    """Who shall answer; empty lets routing choose."""
    delivery: str = ""
    """What may happen to text when its model fails: `restartable`, `buffered` or `live`."""
    data: tuple[DataFile, ...] = ()
