"""Counts what a conversation costs to read, as exactly as the provider allows."""

import asyncio
from collections.abc import Sequence
from typing import Any

import orjson

from services.model.backend import Provider, Tokenizer
from services.model.http import HttpDoor
from services.model.refusal import protocol_error
from services.model.requests import request_messages
from services.runtime.call import Call, Callee
from services.runtime.compression.deepseek import DeepSeekCounter, TokenizerMissingError
from services.runtime.compression.tokens import ESTIMATE, TokenCount, TokenCounter, texts_of
from services.runtime.conversation import Message
from services.runtime.errors import SixhopError
from services.runtime.outgoing import Outgoing
from services.runtime.status import no_answer
from services.runtime.topology import LLM

METHOD = "Tokenize"
COUNTER = Callee(key=f"{LLM}/tokenize")
"""A callee of its own: that it cannot count says nothing about its answers."""
LONGEST_S = 1.0
"""Who waits longer for a count is better served with an estimate."""
MAX_ANSWER_BYTES = 16 << 20
SHORT_BYTES = 8_000
"""What is longer is counted off the event loop: a millisecond takes about sixty tokens."""
MAX_COUNTED_BYTES = 512_000
"""What is longer is estimated: to count it would take seconds of a processor."""


class PromptCounter:
    """Counts for one provider."""

    def __init__(
        self, tokenizer: Tokenizer, provider: Provider, door: HttpDoor, outgoing: Outgoing
    ) -> None:
        """Take who counts, and the way to the provider."""
        self._tokenizer = tokenizer
        self._provider = provider
        self._door = door
        self._outgoing = outgoing
        self._vocabulary: TokenCounter | None = None

    async def count(self, messages: Sequence[Message]) -> TokenCount:
        """Return the count; whatever goes wrong with it, there is an estimate."""
        if self._tokenizer == "deepseek":
            return await self._by_vocabulary(messages)
        counted = await self._ask(messages) if self._tokenizer == "server" else None
        return ESTIMATE.count(messages) if counted is None else TokenCount(counted, exact=True)

    async def _by_vocabulary(self, messages: Sequence[Message]) -> TokenCount:
        length = sum(len(text.encode()) for message in messages for text in texts_of(message))
        if length > MAX_COUNTED_BYTES:
            return ESTIMATE.count(messages)
        if self._vocabulary is not None and length <= SHORT_BYTES:
            return self._vocabulary.count(messages)
        return await asyncio.to_thread(self._load_and_count, messages)

    def _load_and_count(self, messages: Sequence[Message]) -> TokenCount:
        if self._vocabulary is None:
            try:
                self._vocabulary = DeepSeekCounter()
            except TokenizerMissingError:
                self._vocabulary = ESTIMATE
        return self._vocabulary.count(messages)

    async def _ask(self, messages: Sequence[Message]) -> int | None:
        async def send(call: Call) -> int:
            timeout_s = min(call.attempt_timeout_s, LONGEST_S)
            try:
                return await self._tokenize(messages, timeout_s / 2)
            except TimeoutError:
                raise no_answer(LLM, timeout_s, "step_timeout") from None

        try:
            return await self._outgoing.unary(METHOD, send, callee=COUNTER)
        except SixhopError:
            return None

    async def _tokenize(self, messages: Sequence[Message], timeout_s: float) -> int:
        """Let the server write the prompt as its model reads it, and count that."""
        sent = request_messages(self._provider, messages)
        written = await self._post("/apply-template", {"messages": sent}, timeout_s)
        prompt = written.get("prompt") if isinstance(written, dict) else None
        question = {"content": prompt, "add_special": True, "parse_special": True}
        counted = await self._post("/tokenize", question, timeout_s)
        tokens = counted.get("tokens") if isinstance(counted, dict) else None
        if not isinstance(prompt, str) or not isinstance(tokens, list):
            raise protocol_error("no_count", "the provider's tokenizer does not say what it should")
        return len(tokens)

    async def _post(self, path: str, body: Any, timeout_s: float) -> Any:
        root = self._provider.base_url.removesuffix("/v1")
        return await self._door.ask(
            "POST",
            f"{root}{path}",
            body=orjson.dumps(body),
            max_bytes=MAX_ANSWER_BYTES,
            timeout_s=timeout_s,
        )
