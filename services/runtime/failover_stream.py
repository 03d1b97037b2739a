"""Gives one text by up to two models, the second going on where that is allowed."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace

from services.runtime.backup import Backup, DoesNotFitError, Model
from services.runtime.call import CURRENT, Fallback
from services.runtime.circuit import BreakerSnapshot, BreakerState
from services.runtime.clock import Clock
from services.runtime.conversation import Message
from services.runtime.errors import (
    CallerError,
    DeadlineMissingError,
    DependencyFailedError,
    Origin,
    SelfBugError,
    SixhopError,
)
from services.runtime.generation import Generation, TextStream, Wait
from services.runtime.generation_options import NO_OPTIONS, GenerationOptions
from services.runtime.policies.deadline import MAX_SHARE
from services.runtime.policies.fallback import BackupConfig, FallbackDriver
from services.runtime.switch import Switch
from services.runtime.telemetry import MODEL_SWITCHED, get_logger
from services.runtime.topology import MODEL
from services.runtime.two_failures import told_with_backup

CONTEXT_LENGTH = "CONTEXT_LENGTH"
"""The origin's reason when a prompt is longer than the window: never sent again as it is."""
NEVER_REPLACED = frozenset({"CONTENT_FILTERED", "QUOTA_EXCEEDED"})
"""The origin's reasons that another model does not cure: what was asked, and who asked."""
CUT = "cut"
"""The cause of an error that ends a text of which a part was given for good."""


def _nothing() -> None:
    return


def _nobody(switch: Switch) -> None:
    return


def _unseen() -> BreakerSnapshot | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Says what whoever asks for a text knows and allows."""

    live: bool = False
    """True when text that was given stays: it may be gone on from, and never be replaced."""
    prefers_backup: bool = False
    """What routing advises: the first model would refuse, or be late."""
    compressed: bool = False
    """What routing advises: less of the conversation is read sooner."""
    language: str = "en"
    """Of what is told to people, `en` or `zh`."""
    reserve_s: float = 0.0
    """What must be left once the text is whole, seconds."""
    on_first: Callable[[], None] = _nothing
    """Is told before the first text is given."""
    on_switch: Callable[[Switch], None] = _nobody
    """Is told before the first text of the model that stands in is given."""


ANY_TERMS = Terms()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Is what was asked for."""

    messages: Sequence[Message]
    options: GenerationOptions = NO_OPTIONS
    on_wait: Callable[[Wait], None] | None = None
    """Is told now and then while a model hop waits for its provider."""


@dataclass(frozen=True, slots=True)
class Models:
    """Holds both models, and what decides between them."""

    primary: Model
    """The one that is asked first."""
    backup: Backup | None
    """The one that stands in; None without one."""
    clock: Clock
    fallback: FallbackDriver | None = None
    """Says whether and how the second is asked, and counts; None while the engine is off."""
    key: str = MODEL
    """The first one as a callee."""
    seen: Callable[[], BreakerSnapshot | None] = _unseen
    """Tells what the breaker of the first one knows; None when it knows nothing, or only looks
    on."""

    @property
    def rules(self) -> BackupConfig | None:
        """Return how the second is asked; None when it may not be."""
        return self.fallback.backup if self.fallback is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Is one attempt at the text, by one of the models."""

    model: Model
    messages: Sequence[Message]
    options: GenerationOptions
    token_count: int = 0
    """What the messages cost to read, about; for the model that stands in."""
    switch: Switch | None = None
    """Why the model stands in; None for the first one."""


class FailoverStream:
    """Gives one text; whoever iterates over it need not know who writes."""

    def __init__(
        self, models: Models, backup: Backup, rules: BackupConfig, ask: Ask, terms: Terms
    ) -> None:
        """Take both models, how the second is asked, and what was asked for."""
        self._models = models
        self._backup = backup
        self._rules = rules
        self._ask = ask
        self._terms = terms
        self._pieces = self._give()
        self._generation: TextStream | None = None
        self._prefix = ""
        self._given = False
        self._announced = False
        self._failure: SixhopError | None = None
        """What the model that was asked first failed with."""

    @property
    def result(self) -> Generation:
        """Return what has arrived so far, of the model that writes now."""
        if self._generation is None:
            return Generation()
        result = self._generation.result
        return replace(result, text=self._prefix + result.text) if self._prefix else result

    def __aiter__(self) -> AsyncIterator[str]:
        """Yield text.

        Raises:
            SixhopError: neither model wrote a whole text; it is the first one's error and tells
                what the other did, or says that the text was cut where a part of it was given for
                good.
        """
        return self._pieces

    async def close(self) -> None:
        """End whatever is still open, everywhere."""
        await self._pieces.aclose()

    async def _give(self) -> AsyncGenerator[str, None]:
        turn = await self._first_turn()
        while True:
            began = self._models.clock.now()
            try:
                opening = turn.model.stream(
                    turn.messages,
                    options=turn.options,
                    on_wait=self._ask.on_wait,
                    continues_last=turn.switch is not None and turn.switch.continued,
                )
                async with opening as generation:
                    self._generation = generation
                    async for text in generation:
                        self._before_text(turn, began)
                        yield text
                self._announce(turn)
                return
            except SixhopError as error:
                failure = error
            # By now the stream has been left, so that nothing of this turn goes on anywhere.
            turn = await self._next_turn(turn, failure)

    async def _first_turn(self) -> Turn:
        if self._terms.prefers_backup and not self._knows_better():
            try:
                return await self._backup_turn(None)
            except DoesNotFitError:
                # Advice that cannot be followed is none.
                pass
        return self._primary_turn()

    def _primary_turn(self) -> Turn:
        return Turn(
            model=self._models.primary,
            messages=self._ask.messages,
            options=self._ask.options,
        )

    async def _next_turn(self, turn: Turn, failure: SixhopError) -> Turn:
        """Return who writes next; raise what is to be told when nobody does."""
        if self._failure is not None:
            # Both have failed. The cause is what the first model did, whoever was asked first.
            swapped = turn.switch is None
            first, second = (failure, self._failure) if swapped else (self._failure, failure)
            raise told_with_backup(self._ended_by(first), second)
        self._failure = failure
        if turn.switch is not None:
            # It was asked first because of an advice, and the first model was not asked at all.
            if self._given or not replaceable(failure):
                raise self._ended_by(failure)
            return self._primary_turn()
        if not replaceable(failure):
            raise self._ended_by(failure)
        try:
            return await self._backup_turn(failure)
        except DoesNotFitError as problem:
            raise told_with_backup(self._ended_by(failure), problem) from None

    async def _backup_turn(self, failure: SixhopError | None) -> Turn:
        """Return the turn of the model that stands in.

        Raises:
            DoesNotFitError: it cannot help, or not in time.
        """
        continued = self._given and self._terms.live
        written = self.result.text if continued else ""
        if continued and not self._backup.continues(self._ask.options):
            raise DoesNotFitError("it cannot go on from a text that it is given")
        fitted = await self._backup.fit(
            self._ask.messages,
            self._rules,
            left_s=self._left_s(),
            options=self._ask.options,
            compressed=self._terms.compressed,
            language=self._terms.language,
            prefix=written,
        )
        if failure is not None and CONTEXT_LENGTH in _reasons(failure) and not fitted.compression:
            raise DoesNotFitError("what was too long is not sent again unchanged")
        self._left_s()
        self._prefix = written
        switch = Switch(
            model=self._backup.name,
            error_reason="" if failure is None else failure.reason,
            origin_reason="" if failure is None else failure.origin_reason,
            problem="" if failure is None else failure.message,
            voided=self._given and not continued,
            continued=continued,
            compression=fitted.compression,
        )
        get_logger().warning(
            MODEL_SWITCHED,
            reason=switch.error_reason,
            problem=switch.problem,
            given=self._given,
            continued=continued,
            prompt_tokens=fitted.token_count,
            compression=fitted.compression,
        )
        return Turn(
            model=self._backup.model,
            messages=fitted.messages,
            options=fitted.options,
            token_count=fitted.token_count,
            switch=switch,
        )

    def _left_s(self) -> float:
        """Return what there is for the model that stands in.

        Raises:
            DoesNotFitError: its first word would come too late.
        """
        until = CURRENT.get().self_deadline - self._terms.reserve_s
        left_s = until - self._models.clock.now()
        first_s = max(self._backup.first_token_s(self._rules), 0.0)
        if left_s < first_s or left_s <= 0:
            raise DoesNotFitError(
                f"{max(left_s, 0.0):.2f} s are left and its first word takes {first_s:.2f} s"
            )
        return left_s

    def _knows_better(self) -> bool:
        """Tell whether this hop's own breaker knows more of the first model than an advice can.

        One that is open refuses at once, and a half-open one lets a few find out; nobody else
        would. A closed one has seen lately that the model answers in time.
        """
        seen = self._models.seen()
        if seen is None:
            return False
        if seen.state is not BreakerState.CLOSED:
            return True
        inbound = CURRENT.get()
        wait_s = MAX_SHARE * (inbound.self_deadline - self._models.clock.now())
        calls, failed = seen.call_count, seen.failure_ratio > 0
        return calls > 0 and not failed and not seen.overdue and seen.mean_latency_s <= wait_s

    def _before_text(self, turn: Turn, began: float) -> None:
        if not self._given:
            self._terms.on_first()
        if turn.switch is not None and not self._announced:
            self._backup.note_first(self._models.clock.now() - began, turn.token_count)
        self._announce(turn)
        self._given = True

    def _announce(self, turn: Turn) -> None:
        """Tell that another model writes, once it does: one that fails as well is not worth it."""
        if turn.switch is None or self._announced:
            return
        self._announced = True
        if self._generation is not None:
            self._generation.result.switch = turn.switch
        if self._models.fallback is not None:
            self._models.fallback.note_given(self._models.key, Fallback.BACKUP)
        self._terms.on_switch(turn.switch)

    def _ended_by(self, failure: SixhopError) -> SixhopError:
        """Return the error that ends the text."""
        if not (self._given and self._terms.live):
            return failure
        return DependencyFailedError(
            MODEL,
            f"the answer was cut, and what was given of it is not all: {failure.message}",
            cause=CUT,
            origin=failure.origin or Origin(MODEL, code=failure.code.name, reason=failure.reason),
        )


def replaceable(error: SixhopError) -> bool:
    """Tell whether another model may do what one has failed to do."""
    if isinstance(error, CallerError | DeadlineMissingError | SelfBugError):
        # The same call would fail anywhere, and a defect must be seen.
        return False
    return not _reasons(error) & NEVER_REPLACED


def _reasons(error: SixhopError) -> frozenset[str]:
    """Return the error's reason, and that of whoever it began with."""
    return frozenset({error.reason, error.origin.reason if error.origin else ""})
