"""Splits a conversation into rounds, which are kept or left out whole."""

from collections.abc import Sequence
from dataclasses import dataclass

from services.runtime.conversation import Message


@dataclass(frozen=True, slots=True)
class Round:
    """Holds a user's message and everything up to the next one.

    The first round may lack the user's message: what an assistant said before anyone asked.
    """

    messages: tuple[Message, ...]

    @property
    def instructions(self) -> tuple[Message, ...]:
        """Return the system messages of the round: they hold beyond it."""
        return tuple(message for message in self.messages if message.role == "system")

    @property
    def talk(self) -> tuple[Message, ...]:
        """Return what was said in the round."""
        return tuple(message for message in self.messages if message.role != "system")


@dataclass(frozen=True, slots=True)
class Conversation:
    """Holds a conversation in its parts; one after the other they are the conversation."""

    head: tuple[Message, ...]
    """The system messages before anything else."""
    rounds: tuple[Round, ...]
    """Oldest first."""


def split(messages: Sequence[Message]) -> Conversation:
    """Split a conversation, oldest message first.

    A tool call and its results are never parted: a user's message between them begins no round.
    A result without its call, or a call without a result, stays in the round where it stands.
    """
    body = next(
        (index for index, message in enumerate(messages) if message.role != "system"), len(messages)
    )
    results = _last_results(messages)
    rounds: list[list[Message]] = []
    answered_until = body
    for index in range(body, len(messages)):
        message = messages[index]
        if not rounds or (message.role == "user" and index > answered_until):
            rounds.append([])
        rounds[-1].append(message)
        answered_until = max(answered_until, results.get(index, index))
    return Conversation(tuple(messages[:body]), tuple(Round(tuple(each)) for each in rounds))


def _last_results(messages: Sequence[Message]) -> dict[int, int]:
    """Return, for each message with tool calls, where the last of their results stands."""
    asked: dict[str, int] = {}
    last: dict[int, int] = {}
    for index, message in enumerate(messages):
        for call in message.tool_calls:
            # Some servers number the calls of each message anew: the newest of a name counts.
            asked[call.id] = index
        if message.role == "tool" and message.tool_call_id in asked:
            last[asked.pop(message.tool_call_id)] = index
    return last
