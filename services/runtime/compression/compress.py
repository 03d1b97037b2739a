"""Fits a conversation to a smaller window: whole rounds go, what they named stays."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from services.runtime.compression.kept import collect
from services.runtime.compression.keywords import Extract, keywords, sample
from services.runtime.compression.note import Note, write
from services.runtime.compression.report import Compression
from services.runtime.compression.rounds import Conversation, Round, split
from services.runtime.compression.tokens import ESTIMATE, TokenCount, TokenCounter
from services.runtime.conversation import Message

WHOLE_ROUNDS = 3
"""So many rounds at the end are always whole."""
_NOTE_PART = 8
"""One part in so many of the window is kept free for the note, before one more round stays."""
_BARE_NOTE_TOKENS = 100
_SHORTER = 4
"""How many times shorter than a round its note is, at least as a rule."""


class CannotFitError(Exception):
    """Says that the system prompt and the last rounds alone are too long for the window."""

    def __init__(self, needed: int, available: int, *, exact: bool) -> None:
        """Take the tokens needed and available, and whether they were counted exactly."""
        about = "" if exact else "about "
        super().__init__(
            f"the system prompt and the last {WHOLE_ROUNDS} rounds need {about}{needed} tokens and "
            f"{available} are available: choose a model with a larger window, or ask for less"
        )
        self.needed = needed
        self.available = available
        self.exact = exact


@dataclass(frozen=True, slots=True)
class Compressed:
    """Holds a conversation that fits, and what it cost it."""

    messages: tuple[Message, ...]
    report: Compression


def smallest(messages: Sequence[Message], *, keep_reasoning: bool = False) -> tuple[Message, ...]:
    """Return the least that a compression leaves: what instructs, and the last rounds."""
    parts = split(for_another_model(messages, keep_reasoning=keep_reasoning))
    return _joined(parts, len(_droppable(parts)), Note())


def compress(
    messages: Sequence[Message],
    *,
    target_tokens: int,
    language: str = "en",
    counter: TokenCounter = ESTIMATE,
    keep_reasoning: bool = False,
    with_note: bool = True,
    extract: Extract | None = None,
) -> Compressed:
    """Return a conversation that costs at most `target_tokens` to read.

    The system prompt, every other system message and the last three rounds stay as they are. Of
    the other rounds the oldest go, whole, and no more than must. What they named and were about
    is noted at the end of the system prompt. The same conversation gives the same result.

    Args:
        messages: the conversation, oldest first.
        target_tokens: what the model can read, less its answer and the tools that it is offered.
        language: of the note, `en` or `zh`.
        counter: counts as the model does.
        keep_reasoning: the model wants the reasoning before its tool calls back; no other takes it.
        with_note: look for what to note; without, rounds are left out and only that is said.
        extract: finds keywords; the best that is installed, without.

    Raises:
        CannotFitError: what always stays is too long.
    """
    moved = for_another_model(messages, keep_reasoning=keep_reasoning)
    before = counter.count(moved)
    parts = split(moved)
    if before.count <= target_tokens:
        return _compressed(parts, 0, Note(), before, before)
    droppable = _droppable(parts)
    least = counter.count(_joined(parts, len(droppable), Note()))
    if least.count > target_tokens:
        raise CannotFitError(least.count, target_tokens, exact=least.exact)
    costs = [counter.count(each.talk).count for each in droppable]
    # All but the last only where the parts cost the counter less than the whole.
    for dropped in dict.fromkeys((_fewest(costs, least.count, target_tokens), len(droppable))):
        gone = droppable[:dropped]
        note = write(
            collect(gone) if with_note else (),
            keywords(sample(gone), extract=extract) if with_note else (),
            round_count=dropped,
            language=language,
            fits=_Room(target_tokens - least.count - sum(costs[dropped:]), counter).holds,
        )
        after = counter.count(_joined(parts, dropped, note))
        if after.count <= target_tokens:
            return _compressed(parts, dropped, note, before, after)
    return _compressed(parts, len(droppable), Note(), before, least)


@dataclass(frozen=True, slots=True)
class _Room:
    """Is what a note may cost."""

    tokens: int
    counter: TokenCounter

    def holds(self, text: str) -> bool:
        return self.counter.count((Message("system", text),)).count <= self.tokens


def for_another_model(messages: Sequence[Message], *, keep_reasoning: bool) -> tuple[Message, ...]:
    """Return messages without reasoning, but for what a model wants back.

    DeepSeek refuses a tool call that comes back without a field for the reasoning before it, and
    needs no other; other vendors refuse or misread any.

    Args:
        messages: the conversation.
        keep_reasoning: whether the model wants the reasoning before its tool calls back.
    """
    return tuple(
        replace(message, reasoning="")
        if message.reasoning and not (keep_reasoning and message.tool_calls)
        else message
        for message in messages
    )


def _droppable(parts: Conversation) -> tuple[Round, ...]:
    return parts.rounds[:-WHOLE_ROUNDS]


def _fewest(costs: Sequence[int], least: int, target: int) -> int:
    """Return how many of the oldest rounds must go, at least one.

    A note needs room: an eighth of the window, or a quarter of what the rounds cost if that is
    less; and always enough to say that something is missing.
    """
    kept, gone = least, sum(costs)
    for dropped in range(len(costs), 1, -1):
        kept += costs[dropped - 1]
        gone -= costs[dropped - 1]
        most = max(target // _NOTE_PART, _BARE_NOTE_TOKENS)
        if kept + min(most, _BARE_NOTE_TOKENS + gone // _SHORTER) > target:
            return dropped
    return min(1, len(costs))


def _joined(parts: Conversation, dropped: int, note: Note) -> tuple[Message, ...]:
    head = parts.head
    if note.text and head:
        # Not a message of its own: many chat templates take one system message, the first.
        told = replace(head[-1], content=f"{head[-1].content}\n\n{note.text}")
        head = (*head[:-1], told)
    elif note.text:
        head = (Message("system", note.text),)
    instructions = (message for each in parts.rounds[:dropped] for message in each.instructions)
    whole = (message for each in parts.rounds[dropped:] for message in each.messages)
    return (*head, *instructions, *whole)


def _compressed(
    parts: Conversation, dropped: int, note: Note, before: TokenCount, after: TokenCount
) -> Compressed:
    report = Compression(
        dropped_rounds=dropped,
        kept_rounds=len(parts.rounds) - dropped,
        tokens_before=before.count,
        tokens_after=after.count,
        exact=after.exact,
        facts_kept=note.fact_count,
        keywords=note.keywords,
    )
    return Compressed(_joined(parts, dropped, note), report)
