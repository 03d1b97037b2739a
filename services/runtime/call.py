"""Defines the words that every policy speaks; does no I/O."""

from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from services.runtime.credential import Credential
    from services.runtime.tenants import TenantLimits

T = TypeVar("T")


class Outcome(StrEnum):
    """Says what the end of a call tells about the one who served it."""

    SUCCESS = "success"
    FAILURE = "failure"
    IGNORED = "ignored"
    """Says nothing: our own refusal, a caller's cancel, bad input."""


SUCCESS: Final = Outcome.SUCCESS
FAILURE: Final = Outcome.FAILURE
IGNORED: Final = Outcome.IGNORED
"""The outcomes, by names of their own for what every call does: to look a member up in its class
takes ten times as long as to look up a name of a module."""


class Mode(StrEnum):
    """Says how far a rule goes; `observe` counts what `enforce` would have done."""

    OFF = "off"
    OBSERVE = "observe"
    ENFORCE = "enforce"


OFF: Final = Mode.OFF
"""By a name of its own, as the outcomes are."""


class Criticality(IntEnum):
    """Orders calls by importance; the lowest is refused first."""

    SHEDDABLE = 1
    SHEDDABLE_PLUS = 2
    CRITICAL = 3
    CRITICAL_PLUS = 4


class Identity(NamedTuple):
    """Tells whose run this is; set at the edge and passed on unchanged.

    A named tuple, because one is made for every call: a frozen dataclass costs four times as much.
    """

    run_id: str = ""
    """Identifies the user's request over all hops."""
    request_id: str = ""
    """Identifies the request for the client and its proxies (X-Request-ID)."""
    tenant: str = ""
    """Names whose limits count."""
    criticality: Criticality = Criticality.CRITICAL
    """Decides who is refused first."""
    traceparent: str = ""
    """The W3C trace context, passed on as it came."""
    wants_reports: bool = False
    """Whether an answer tells what every hop was given and used; an error always does."""


class AttemptReport(NamedTuple):
    """Describes one attempt as its caller saw it; lengths in seconds."""

    hop: str
    method: str
    depth: int
    """How many calls lie between the hop that tells and this one; 1 is its own."""
    attempt: int
    start_s: float
    """From the arrival at the hop that tells."""
    given_s: float
    used_s: float
    left_s: float
    """What the caller had left to its own deadline afterwards."""
    outcome: str
    told: bytes = b""
    """The reports of the calls below, as the callee sent them."""


SLACK_S = 0.001
"""A call that is cut by its deadline is told so a moment before or after."""
MAX_REPORTS = 32
"""How many reports travel at most: with an error's text they must fit into 8 KiB of metadata."""


@dataclass(slots=True)
class Inbound:
    """Describes one call that this process serves."""

    hop: str
    method: str
    streaming: bool
    arrived_at: float
    """The instant of arrival."""
    deadline: float
    """The caller's deadline, an instant."""
    identity: Identity = field(default_factory=Identity)
    margin_s: float = 0.0
    """How long before the caller's deadline this hop ends its own work."""
    reports: list[AttemptReport] = field(default_factory=list)
    """What the calls below this one were given and used."""
    wait_s: float = 0.0
    """Time spent waiting for dependencies; waits at the same time count once."""
    waiting: list[str] = field(default_factory=list)
    """The dependencies that are being waited for right now."""
    waiting_since: float = 0.0
    cut_wait: str = ""
    """The dependency whose wait was cut short by our own deadline or by our caller."""
    note: str = ""
    """What the method name does not say, such as the name of the tool."""
    enough_s: float = 0.0
    """What it takes at most when it is well, as its tool declares; 0 is not declared."""
    teaches: bool = False
    """Whether this call is one of those that the path estimate learns from."""
    answered_at: float = 0.0
    """When the first event of a stream was given; 0 before."""
    admitted_at: float = 0.0
    """When admission let it in."""
    admitted_as: int = 0
    """How many calls were then in flight, this one included."""
    credential: "Credential | None" = None
    """What the caller shows to be known by; read at the edge only, and not kept."""
    limits: "TenantLimits | None" = None
    """What its tenant may do; None where nobody has looked, as behind the edge."""
    token_count: int = 0
    """The tokens that the run has used, as far as its door knows; counted at the edge."""
    kept: Any = None
    """What the gateway keeps of the run; read there only."""
    cutoff: Any = None
    """What ends the work for it from outside, while it is being served."""

    @property
    def self_deadline(self) -> float:
        """Return the instant at which this hop answers by itself."""
        return self.deadline - self.margin_s

    def is_over(self, now: float) -> bool:
        """Tell whether the time for this hop's answer is up, at an instant."""
        return now >= self.self_deadline - SLACK_S

    @property
    def time_remaining_on_arrival_s(self) -> float:
        """Return `R` of the budget arithmetic."""
        return self.deadline - self.arrived_at

    def begin_wait(self, dependency: str, now: float) -> None:
        """Note that a dependency is being waited for."""
        if not self.waiting:
            self.waiting_since = now
        self.waiting.append(dependency)

    def end_wait(self, dependency: str, now: float) -> None:
        """Note that the wait is over."""
        self.waiting.remove(dependency)
        if not self.waiting:
            self.wait_s += now - self.waiting_since

    def note_cut(self) -> None:
        """Note what is being waited for at the instant at which the time is up.

        Only that is to blame: a wait that the service has ended itself, such as that of a hedge
        that lost, excuses nothing that came after it.
        """
        self.cut_wait = self.waiting[0] if self.waiting else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLimits:
    """Bounds the waits for one dependency; every length in seconds."""

    step_timeout_s: float
    """The longest wait for an answer, or for the first event of a stream."""
    read_timeout_s: float = 15.0
    """The longest wait for each later event of a stream."""
    first_content_timeout_s: float | None = None
    """The longest wait for the first content; heartbeats do not extend it."""
    min_useful_s: float = 0.01
    """Below this the callee cannot answer, so nothing is sent."""
    share: float = 0.6
    """The part of the time remaining that may be spent on one wait; at most 0.6."""


class Fallback(StrEnum):
    """Names what a caller may give in place of a dependency that cannot answer, best first."""

    NONE = "none"
    """Nothing: the caller must report the error."""
    CACHE = "cache"
    """An earlier answer, marked as old."""
    BACKUP = "backup"
    """The answer of a smaller twin."""
    DEFAULT = "default"
    """The caller's own default."""
    PARTIAL = "partial"
    """What there is; what is missing is named."""
    SKIP = "skip"
    """Nothing, and the answer says so."""


class Group(StrEnum):
    """Names the dependencies that share permits and connections."""

    CORE = "core"
    DATA = "data"
    AUXILIARY = "auxiliary"
    EXTERNAL = "external"
    BACKUP = "backup"
    """What stands in for the model: whatever a sick model holds, there is room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Callee:
    """Says what a callee declares about itself, as its caller knows it."""

    key: str
    """Names it for breaker, bulkhead and budgets: `model`, `tool/sql`."""
    group: Group = Group.CORE
    """Whose permits and connections it uses."""
    idempotent: bool = False
    """True when a call may be sent twice; without a declaration it may not."""
    paid: bool = False
    """True when each attempt may cost money behind it: it is sent again only when the one before
    has surely not begun."""
    max_concurrency: int | None = None
    """How many calls to it may be under way; None leaves it to its group."""
    slow_call_s: float = 2.0
    """A call that takes longer is slow; 2 s suit tools, 5 s models."""
    timeout_s: float | None = None
    """After so long it gives up by itself, seconds; None leaves it to its callers."""
    has_stand_in: bool = False
    """Whether something answers in its place. Then no call waits for permits, or for as long as a
    busy callee asks it to, and its breaker opens by a few failures, however few calls there are."""
    min_timeout_s: float | None = None
    """No adaptive timeout goes below; None leaves it to the ladder of the hops behind it."""
    metadata: tuple[tuple[str, str], ...] = ()
    """What its calls carry beside the identity: for a mesh that leads them by it."""


UNDECLARED = Callee(key="undeclared")
"""Is the callee of a call whose caller knows nothing about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """Is one thing to give when a call has failed for good."""

    mechanism: Fallback
    """What kind of thing it is."""
    run: Callable[[], Awaitable[Any]]
    """Makes it; an error of ours, or silence until the time is up, says that it does not fit."""
    age_s: float = 0.0
    """How old it is at the beginning of the call; above zero for stored answers only."""
    expected_s: float = 0.0
    """How long making it takes as a rule; it is not begun with less time than that."""
    tell: "Callable[[Degradation], None]" = lambda degradation: None
    """Is told when this is what was given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Degradation:
    """Says that a call was answered by an alternative."""

    mechanism: Fallback
    """What kind of thing was given."""
    reason: str
    """The reason of the error that made it necessary."""
    age_s: float = 0.0
    """How old the answer was when it was given; zero for one that was made then."""
    message: str = ""
    """What the error said, for people."""


@dataclass(slots=True)
class Call:
    """Describes one call that this process makes, with its present attempt."""

    dependency: str
    method: str
    streaming: bool
    inbound: Inbound
    limits: CallLimits
    last_chance: bool = False
    """True when no further attempt can follow, so that the whole share may be spent."""
    note: str = ""
    """What the method's name does not say, such as the name of the tool."""
    attempt: int = 0
    """The number of the present attempt, from 1."""
    begun: int = 0
    """How many attempts have begun."""
    started_at: float = 0.0
    """When the present attempt began."""
    attempt_timeout_s: float = 0.0
    """What the present attempt is given; also its gRPC deadline."""
    told: bytes = b""
    """What the present attempt's callee reported of the calls below it."""
    wait_limit: "WaitLimit | None" = None
    """For a stream: how long each wait may be."""
    callee: Callee = UNDECLARED
    """What is called, more finely than by hop."""
    delivered: bool = False
    """True once a stream has given its consumer an event: it must never be run again."""
    advertised_p90_s: float = 0.0
    """What nine of ten answers take, as the callee says or as they took here; 0 is unknown."""
    alternatives: Sequence[Alternative] = ()
    """What may be given when the call fails, in the order that the callee declares."""
    degradation: Degradation | None = None
    """How the call was answered when it was not by its callee."""
    watched: Any = None
    """What the breaker knows of the present attempt."""
    place: Any = None
    """What the bulkhead holds for the present attempt."""
    sent_at: float = 0.0
    """When the present attempt had passed every guard."""
    answered: bool = False
    """True once a stream has begun to answer the present attempt."""

    def next_attempt(self) -> "Call":
        """Return what the next attempt begins with: the same call, and nothing of another attempt.

        The first is the call itself. Others may be under way at the same time, and are written out,
        because a copy of every field costs four times as much.
        """
        self.begun = number = self.begun + 1
        if number == 1:
            self.attempt = 1
            return self
        return Call(
            self.dependency,
            self.method,
            self.streaming,
            self.inbound,
            self.limits,
            self.last_chance,
            self.note,
            number,
            callee=self.callee,
            alternatives=self.alternatives,
        )


class WaitLimit(Protocol):
    """Says until when the next event of a stream may be waited for.

    A wait that begins later never has to end sooner: who has set a timer need not ask again.
    """

    def first_wait_until(self) -> tuple[float, str]:
        """Return the instant for the first event, and the name of the limit that sets it."""
        ...

    def next_wait_until(self, now: float) -> tuple[float, str]:
        """Return the instant for a later event, and the name of the limit that sets it."""
        ...

    def content_arrived(self) -> None:
        """Note that the first content is there."""
        ...


class Driver(Protocol):
    """Owns the attempts of one call: how many, when, and what instead."""

    idle: bool
    """Whether it has nothing to do for any call, by the rules of now: then it is not asked."""

    def applies(self, call: Call) -> bool:
        """Tell whether there is anything to do for this call; a driver that is passed is free."""
        ...

    async def __call__(self, call: Call, attempt: Callable[[], Awaitable[T]]) -> T:
        """Run attempts until one result or one error is final."""
        ...


CURRENT: ContextVar[Inbound] = ContextVar("sixhop_inbound")
"""The call being served. Set by the server's door, read by the client's."""
