"""Scripts two models, and asks them for a text."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

from services.runtime.backup import Backup
from services.runtime.call import CURRENT, Inbound
from services.runtime.circuit import BreakerSnapshot, BreakerState, Reason
from services.runtime.clock import ManualClock
from services.runtime.compression.compressor import Compressor
from services.runtime.compression.tokens import ESTIMATE, TokenCount
from services.runtime.conversation import Message
from services.runtime.errors import DependencyFailedError, Origin, SixhopError
from services.runtime.failover import Failover
from services.runtime.failover_stream import Models, Terms
from services.runtime.generation import Generation, ModelCard, TextStream, Usage, Wait
from services.runtime.generation_options import NO_OPTIONS, GenerationOptions
from services.runtime.policies.fallback import FallbackConfig, FallbackDriver
from services.runtime.switch import Switch
from tests.unit.runtime.fake_time import LoopClock

QUESTION = [Message("system", "Be kind."), Message("user", "Why is the sky blue?")]
CARD = ModelCard(name="small", window_tokens=8192, max_output_tokens=512)
OPTIONS = GenerationOptions(max_output_tokens=200)


def failed(reason: str = "NO_ANSWER", *, hop: str = "model") -> DependencyFailedError:
    """Return the error of a model that failed in some way."""
    origin = Origin(hop, code="DEADLINE_EXCEEDED", reason=reason)
    return DependencyFailedError("model", f"it failed: {reason}", cause="silent", origin=origin)


@dataclass(frozen=True)
class Takes:
    """Lets time pass before the next piece."""

    length_s: float


@dataclass(frozen=True)
class Pause:
    """Waits before the next piece, as the loop counts time."""

    length_s: float = 1.0


Piece = str | SixhopError | Takes | Pause


class ScriptedModel:
    """Writes what a test says, and knows what it was asked and whether it is still at it."""

    def __init__(self, name: str, clock: ManualClock, *pieces: Piece) -> None:
        self.name = name
        self.pieces = pieces
        self.open_count = 0
        self.described_count = 0
        self.asked: list[Sequence[Message]] = []
        self.continued: list[bool] = []
        self.options: list[GenerationOptions] = []
        self.ratio = 1.0
        """How many tokens of its own an estimated one is."""
        self.card: ModelCard | SixhopError = CARD
        self._clock = clock

    @asynccontextmanager
    async def stream(
        self,
        messages: Sequence[Message],
        *,
        options: GenerationOptions = NO_OPTIONS,
        on_wait: Callable[[Wait], None] | None = None,
        continues_last: bool = False,
    ) -> AsyncIterator[TextStream]:
        self.asked.append(messages)
        self.options.append(options)
        self.continued.append(continues_last)
        self.open_count += 1
        try:
            yield _ScriptedStream(self, self._clock)
        finally:
            self.open_count -= 1

    async def describe(self) -> ModelCard:
        self.described_count += 1
        if isinstance(self.card, SixhopError):
            raise self.card
        return self.card

    async def count(self, messages: Sequence[Message]) -> TokenCount:
        return TokenCount(int(self.ratio * ESTIMATE.count(messages).count), exact=True)


class _ScriptedStream:
    def __init__(self, model: ScriptedModel, clock: ManualClock) -> None:
        self._model = model
        self._clock = clock
        self._result = Generation()

    @property
    def result(self) -> Generation:
        return self._result

    async def __aiter__(self) -> AsyncIterator[str]:
        for piece in self._model.pieces:
            match piece:
                case str():
                    self._result.text += piece
                    yield piece
                case Takes(length_s):
                    self._clock.advance(length_s)
                case Pause(length_s):
                    await LoopClock().sleep(length_s)
                case _:
                    raise piece
        self._result.model = self._model.name
        self._result.finish_reason = "stop"
        self._result.usage = Usage(10, len(self._result.text))


@dataclass
class Pair:
    """Is two models, and what was told while one of them wrote."""

    clock: ManualClock
    first: ScriptedModel
    second: ScriptedModel
    seen: BreakerSnapshot | None = None
    """What the breaker of the first one knows."""
    config: FallbackConfig = field(default_factory=FallbackConfig)
    switches: list[Switch] = field(default_factory=list)
    story: list[str] = field(default_factory=list)
    """What was told and given, in order."""

    def __post_init__(self) -> None:
        self.backup = Backup(self.second, Compressor(self.clock), self.clock)
        self.backup.card = CARD
        self.fallback = FallbackDriver(self.config, self.clock)
        self.failover = Failover(
            Models(self.first, self.backup, self.clock, self.fallback, "model", lambda: self.seen)
        )

    def terms(self, **known: object) -> Terms:
        """Return terms that write into the story."""
        return Terms(on_first=lambda: self.story.append("first"), on_switch=self._switched, **known)  # type: ignore[arg-type]

    async def write(
        self,
        messages: Sequence[Message] = QUESTION,
        *,
        has_s: float = 20.0,
        options: GenerationOptions = OPTIONS,
        **known: object,
    ) -> Generation:
        """Read a whole text; the caller has so many seconds left."""
        with having(self.clock, has_s):
            opening = self.failover.stream(messages, options=options, terms=self.terms(**known))
            async with opening as generation:
                async for text in generation:
                    self.story.append(text)
                return generation.result

    @property
    def open_count(self) -> int:
        """Return how many streams are still open."""
        return self.first.open_count + self.second.open_count

    def _switched(self, switch: Switch) -> None:
        self.switches.append(switch)
        self.story.append("switch")


def pair(
    first: Sequence[Piece], second: Sequence[Piece] = ("a small ", "answer"), **own: object
) -> Pair:
    """Return two models that do as they are told, one after the other."""
    clock = ManualClock()
    big = ScriptedModel("big", clock, *first)
    return Pair(clock, big, ScriptedModel("small", clock, *second), **own)  # type: ignore[arg-type]


@contextmanager
def having(clock: ManualClock, length_s: float) -> Iterator[Inbound]:
    """Serve a call that has so many seconds left until this hop must have answered."""
    now = clock.now()
    inbound = Inbound("domain", "RunAgent", True, now, now + length_s)
    token = CURRENT.set(inbound)
    try:
        yield inbound
    finally:
        CURRENT.reset(token)


def breaker(state: BreakerState, **numbers: float) -> BreakerSnapshot:
    """Return what a breaker knows."""
    known: dict[str, object] = {
        "key": "model", "state": state, "reason": Reason.NEW, "forced": False,
        "retry_after_s": None, "call_count": 0, "failure_ratio": 0.0, "mean_latency_s": 0.0,
        "slow_count": 0, "overdue": 0, "probes": 0, "trip_count": 0, "epoch": 0, "age_s": 0.0,
    }  # fmt: skip
    return BreakerSnapshot(**(known | numbers))  # type: ignore[arg-type]
