"""Names the fields of what is told about runs."""

from typing import Literal, NotRequired

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from gateway.hops import HopTold
from gateway.runs.record import Status


class QuestionTold(TypedDict):
    """Tells what was asked, as far as it is kept."""

    text: str | None
    """None unless the configuration allows to keep prompts."""
    char_count: int | None
    """None for a run that was refused before its question was read."""
    source_count: int
    """How many files came with it."""


class UsageTold(TypedDict):
    """Counts the tokens of all generations of a run."""

    input_token_count: int
    output_token_count: int
    estimated: bool
    """Whether a provider gave no count, so that it is an estimate."""


class LesserTold(TypedDict):
    """Is one fallback that was used."""

    mechanism: str
    """`cache`, `backup`, `default`, `template`, `extract`, `partial` or `skip`."""
    part: str
    reason: str
    """Why, for people."""
    age_ms: int | None
    """How old the part is; for earlier answers."""
    error_reason: str
    """The reason of the error behind it; empty when there was none."""


class FileTold(TypedDict):
    """Names a file of a run."""

    name: str
    media_type: str
    byte_count: int
    kept: bool
    """Whether it fitted into what is kept."""
    url: str | None
    """Where it is; None when it is not kept."""


class RunErrorTold(TypedDict):
    """Says what ended a run that has no answer."""

    message: str
    code: str
    """The gRPC code."""
    reason: str
    hop: str
    """Where it began."""
    cause: str
    remaining_ms: int
    details: dict[str, str]


class ToolCallTold(TypedDict):
    """Is a call of one of the question's tools."""

    id: str
    name: str
    arguments: str | None


class AnswerTold(TypedDict):
    """Is what a run has answered."""

    text: str | None
    """None when the beginning of it is not kept any more."""
    tool_calls: list[ToolCallTold]
    sources: list[str]
    finish_reason: str


class RunLinks(TypedDict):
    """Says where more of a run is."""

    self: str
    events: str


class RunStarted(TypedDict):
    """Says that a run has begun."""

    object: Literal["run"]
    id: str
    request_id: str
    status: Literal["running"]
    links: RunLinks


class RunSummary(TypedDict):
    """Tells what a run is, without what it said."""

    object: Literal["run"]
    id: str
    request_id: str
    tenant: str
    gateway: str
    """The process that runs or ran it."""
    method: str
    """`Run` for a stream of events, `Ask` for an answer at once."""
    status: Status
    agent: str
    """Who answers; until that is decided, who was asked for."""
    model: str
    question: QuestionTold
    started_at: str
    """The instant in UTC, as ISO 8601 has it."""
    budget_ms: int | None
    """The deadline budget of the whole run; None when it was refused before it had one."""
    elapsed_ms: int | None
    """How long it took; None while it runs."""
    usage: UsageTold | None
    degraded: list[LesserTold]
    missing_parts: list[str]
    artifacts: list[FileTold]
    error: RunErrorTold | None
    event_count: int


class RunWhole(RunSummary):
    """Tells all that is kept of a run but its events."""

    hops: list[HopTold]
    """What each hop was given, used and had left; there once the run has ended."""
    answer: AnswerTold | None
    """None while it runs, without an answer, and when its words are not kept any more."""
    links: RunLinks


class RunPage(TypedDict):
    """Lists runs, the newest first."""

    object: Literal["list"]
    data: list[RunSummary]
    next: str | None
    """Given as `before`, the list goes on; None when no more follow."""
    partial: bool
    """Whether runs of other gateways may be missing, as what gateways share cannot be read."""


class EventTold(TypedDict):
    """Is one event of a run; beside these it has the fields of its kind, as docs/runs.md lists."""

    sequence: int
    """Counts from 1; also the `id` of the event."""
    at_ms: int
    """When it came, from the start of the run."""
    kind: str
    """Also the name of the event."""


# With more fields it would describe every event.
@with_config(ConfigDict(extra="forbid"))
class MissingTold(TypedDict):
    """Says why events of a run do not come, or not yet; docs/runs.md lists these events as well."""

    reason: NotRequired[str]
    first_missing: NotRequired[int]
    last_missing: NotRequired[int]
    gateway: NotRequired[str]
    """The process that runs it; its events come once it has ended."""
