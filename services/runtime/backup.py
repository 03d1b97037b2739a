"""Knows the model that stands in: what it can, how fast it is, and what of a conversation fits."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Protocol

from services.runtime.clock import Clock
from services.runtime.compression.compress import (
    CannotFitError,
    Compressed,
    for_another_model,
    smallest,
)
from services.runtime.compression.compressor import Compressor
from services.runtime.compression.tokens import (
    ESTIMATE,
    TokenCount,
    TokenEstimate,
    estimate_offered_tokens,
)
from services.runtime.conversation import Message
from services.runtime.errors import SixhopError
from services.runtime.generation import ModelCard, TextStream, Wait
from services.runtime.generation_options import (
    FREE_CHOICES,
    JSON_OBJECT,
    NO_OPTIONS,
    GenerationOptions,
)
from services.runtime.outgoing import own_work
from services.runtime.policies.fallback import BackupConfig
from services.runtime.recent import RecentLengths
from services.runtime.telemetry import MODEL_CARD_MISSING, get_logger

MIN_SAMPLES = 5
"""With fewer first words of its own a hop believes what the model tells of itself."""
SAMPLES = 50
"""How many of the latest are looked at."""
COMPRESSED_RATIO = 0.5
"""The part of a conversation that is sent where less of it was advised."""
READING_SHARE = 0.5
"""The part of the time left that reading the conversation may take; writing needs the rest."""
COMPRESSING_SHARE = 0.2
"""The part of the time left that fitting the conversation may take."""
LEAST_TOKENS = 256
"""However slowly a model reads, less makes no sense."""
SURE_RATIO = 0.35
"""A conversation that takes this part of the window by estimate fits by every vocabulary: a small
one has up to 2.7 times as many tokens for Chinese. Of others the model's own count is asked for."""


class Model(Protocol):
    """Writes text, and tells what it can."""

    def stream(
        self,
        messages: Sequence[Message],
        *,
        options: GenerationOptions = NO_OPTIONS,
        on_wait: Callable[[Wait], None] | None = None,
        continues_last: bool = False,
    ) -> AbstractAsyncContextManager[TextStream]:
        """Return a generation to iterate over; leaving the block ends it everywhere."""
        ...

    async def describe(self) -> ModelCard:
        """Return what the model can do, or raise a SixhopError."""
        ...

    async def count(self, messages: Sequence[Message]) -> TokenCount:
        """Return what a conversation costs it to read, or raise a SixhopError."""
        ...


class DoesNotFitError(Exception):
    """Says that nothing of use can be sent to the model that stands in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """Is what is sent to the model that stands in."""

    messages: Sequence[Message]
    options: GenerationOptions
    """As was asked for, with no more tokens than it writes."""
    token_count: int
    """What the messages cost to read, about."""
    compression: str = ""
    """What was left out, in a sentence; empty when all of it is sent."""


class Backup:
    """Is the model that stands in."""

    def __init__(self, model: Model, compressor: Compressor, clock: Clock) -> None:
        """Take the way to it, and what makes conversations fit."""
        self.model = model
        self.card: ModelCard | None = None
        """What it has told of itself last; None before."""
        self._compressor = compressor
        self._clock = clock
        self._firsts = RecentLengths(SAMPLES)
        self._per_token = RecentLengths(SAMPLES)

    async def learn_forever(self, hop: str, rules: BackupConfig) -> None:
        """Ask again and again what it can; the last answer stays while it is away."""
        # The first conversation that has to be compressed must not wait for what does it.
        await self._compressor.prepare()
        while True:
            try:
                with own_work(hop, "LearnModel", rules.refresh_timeout_s, self._clock):
                    self.card = await self.model.describe()
            except SixhopError as error:
                get_logger().warning(
                    MODEL_CARD_MISSING, problem=error.message, known=self.card is not None
                )
            await self._clock.sleep(rules.refresh_interval_s)

    @property
    def name(self) -> str:
        """Return the model's name; empty while it has not told."""
        return self.card.name if self.card else ""

    def continues(self, options: GenerationOptions) -> bool:
        """Return whether it goes on from a text that it is given, generated as the options say.

        What has to be JSON, or has to call a tool, is held to that from its beginning on: two
        halves would not be one whole.
        """
        free = options.response_format is None and options.tool_choice in FREE_CHOICES
        return free and self.card is not None and self.card.prefill

    def first_token_s(self, rules: BackupConfig) -> float:
        """Return what its first word takes as a rule, as seen from here if often enough."""
        if len(self._firsts) >= MIN_SAMPLES:
            return self._firsts.percentile(0.5)
        told_s = self.card.first_token_s if self.card else None
        return rules.first_token_s if told_s is None else told_s

    def note_first(self, length_s: float, token_count: int) -> None:
        """Take how long a first word took, and of how long a prompt."""
        self._firsts.add(length_s)
        if token_count > 0:
            self._per_token.add(length_s / token_count)

    async def fit(
        self,
        messages: Sequence[Message],
        rules: BackupConfig,
        *,
        left_s: float,
        options: GenerationOptions = NO_OPTIONS,
        compressed: bool = False,
        language: str = "en",
        prefix: str = "",
    ) -> Fitted:
        """Return what of a conversation it can read in time.

        Args:
            messages: the whole conversation.
            rules: how it is asked.
            left_s: what there is until the answer must be whole, seconds.
            options: how the text is to be generated.
            compressed: whether less than all was advised.
            language: of what the compression says, `en` or `zh`.
            prefix: what was written already and is to be gone on from.

        Raises:
            DoesNotFitError: what must not be left out is too much for its window, or it cannot
                generate as the options say.
        """
        if lacking := self._lacking(options):
            raise DoesNotFitError(f"it cannot do, or has not told that it can: {lacking}")
        window = self.card.window_tokens if self.card else rules.window_tokens
        messages = for_another_model(messages, keep_reasoning=self._wants_reasoning)
        last = [Message("assistant", prefix)] if prefix else []
        output = self._output(options.max_output_tokens, window, prefix)
        granted = replace(options, max_output_tokens=output)
        room = window - output - (ESTIMATE.count(last).count if last else 0)
        room -= estimate_offered_tokens(options.tools)
        whole = ESTIMATE.count(messages).count
        wanted = min(room, self._readable(left_s), whole)
        if compressed:
            wanted = min(wanted, int(COMPRESSED_RATIO * whole))
        if len(smallest(messages, keep_reasoning=self._wants_reasoning)) == len(messages):
            # There is nothing that could be left out.
            wanted = room
        if whole <= min(wanted, SURE_RATIO * room):
            return Fitted(messages=[*messages, *last], options=granted, token_count=whole)
        result = await self._compressed(messages, room, wanted, left_s, rules, language)
        report = result.report
        return Fitted(
            messages=[*result.messages, *last],
            options=granted,
            token_count=report.tokens_after,
            compression=report.sentence(language) if report.dropped_rounds else "",
        )

    async def _compressed(
        self,
        messages: Sequence[Message],
        room: int,
        wanted: int,
        left_s: float,
        rules: BackupConfig,
        language: str,
    ) -> Compressed:
        """Return a conversation of the wanted size, or of the size for which there is room."""
        until = self._clock.now() + min(rules.compress_timeout_s, COMPRESSING_SHARE * left_s)
        problem = ""
        for target in dict.fromkeys((min(max(wanted, LEAST_TOKENS), room), room)):
            try:
                return await self._compressor.compress(
                    messages,
                    target_tokens=target,
                    timeout_s=max(0.0, until - self._clock.now()),
                    language=language,
                    keep_reasoning=self._wants_reasoning,
                    exact=self.model.count if self.card else None,
                )
            except CannotFitError as error:
                problem = str(error)
        raise DoesNotFitError(problem)

    @property
    def _wants_reasoning(self) -> bool:
        """Return whether it takes reasoning back; one that has not told gets none."""
        return self.card is not None and self.card.wants_reasoning

    def _lacking(self, options: GenerationOptions) -> str:
        """Return what it cannot do of what is asked for; empty when it can do it all.

        The same is refused by its own hop, but only once it is asked.
        """
        form = options.response_format
        card = self.card or ModelCard(name="", window_tokens=0, max_output_tokens=0)
        needs = {
            "tools": (bool(options.tools), card.tools),
            "strict tools": (any(tool.strict for tool in options.tools), card.strict_tools),
            "a single tool call": (options.single_tool_call, card.single_tool_call),
            "a seed": (options.seed is not None, card.seed),
            "JSON": (
                form is not None,
                card.json_object if form and form.kind == JSON_OBJECT else card.json_schema,
            ),
        }
        return ", ".join(name for name, (needed, can) in needs.items() if needed and not can)

    def _output(self, asked: int, window: int, prefix: str) -> int:
        """Return the most tokens to write: what is left of what was asked for, or what it writes.

        Raises:
            DoesNotFitError: as much was written as was asked for.
        """
        most = (self.card.max_output_tokens if self.card else 0) or window // 4
        if not asked:
            return most
        written = TokenEstimate()
        written.add(prefix)
        if asked <= written.count:
            raise DoesNotFitError("the text is as long as it may be")
        return min(asked - written.count, most)

    def _readable(self, left_s: float) -> int:
        """Return how many tokens it can read in its part of a time; a lot while nobody knows."""
        if len(self._per_token) < MIN_SAMPLES:
            return 1 << 31
        per_token_s = max(self._per_token.percentile(0.5), 1e-9)
        return max(LEAST_TOKENS, int(READING_SHARE * left_s / per_token_s))
