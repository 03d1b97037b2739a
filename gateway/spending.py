"""Counts the tokens of a run while it goes on."""

from services.runtime.call import Inbound
from sixhop.type.v1 import run_pb2

CHARS_PER_TOKEN = 4
"""Of English; other languages have fewer, and their runs are charged less until they say more."""


class Spending:
    """Notes at a call what its run has used, as well as it is known.

    A run says only at its end what it has used. One that is cancelled or fails says nothing, and
    has cost as much: once it has begun to answer, it counts by the characters read and written.
    """

    def __init__(self, inbound: Inbound, question: run_pb2.Question) -> None:
        """Take the call, and the question that its run reads."""
        self._inbound = inbound
        self._question = question
        self._told = False
        self.written_chars = 0
        """How many were written; whoever gets a piece of text adds its length."""

    def settle(self) -> None:
        """Note what a run has used that has begun to answer, unless it has said so itself."""
        if self.written_chars and not self._told:
            chars = prompt_chars(self._question) + self.written_chars
            self._inbound.token_count = chars // CHARS_PER_TOKEN

    def see_end(self, finished: run_pb2.RunFinished) -> None:
        """Note what the run says of itself at its end."""
        usage = finished.usage
        self._told = True
        self._inbound.token_count = usage.input_token_count + usage.output_token_count


def prompt_chars(question: run_pb2.Question) -> int:
    """Return how long a question is with all that was said before it, in characters."""
    return len(question.text) + sum(len(message.content) for message in question.history)
