"""Words answers and refusals as providers do."""

import hashlib
import random
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from services.model.sim.asking import Ask, content
from services.model.sim.config import Dialect, SimSettings
from services.model.sim.faults import Fault
from services.model.sim.log import CONTEXT_OVERFLOW
from services.model.sim.wording import as_json, instance, sentence, shortened, sliced, spoken

CACHE_BLOCK = 64
"""Prompts are cached in blocks of so many tokens."""
MAX_CACHED = 10_000
_TYPES = {
    401: "authentication_error",
    402: "insufficient_balance",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    500: "server_error",
    502: "server_error",
    503: "overloaded_error",
    504: "server_error",
    529: "overloaded_error",
}


class RefusalError(Exception):
    """Refuses a request by a status and a body."""

    def __init__(self, status: int, body: Mapping[str, Any], *, name: str) -> None:
        """Take what is answered, and the word for the log."""
        super().__init__(name)
        self.status = status
        self.body = body
        self.name = name


def error_body(
    dialect: Dialect, status: int, message: str, *, type: str = "", code: str = ""
) -> dict[str, Any]:
    """Return the body of a refusal."""
    kind = type or _TYPES.get(status, "invalid_request_error")
    if dialect == "llamacpp":
        return {"error": {"code": status, "message": message, "type": kind}}
    if dialect == "deepseek" and not code:
        code = "invalid_request_error" if status < 500 else "internal_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": code or None}}


def overflow(dialect: Dialect, ask: Ask, window: int) -> RefusalError:
    """Return the refusal of a prompt that is too long."""
    prompt, answer = ask.prompt_tokens, ask.max_tokens or 0
    if dialect == "llamacpp":
        message = f"request ({prompt} tokens) exceeds the available context size ({window} tokens)"
        body = error_body(dialect, 400, message, type="exceed_context_size_error")
        body["error"] |= {"n_prompt_tokens": prompt, "n_ctx": window}
    else:
        message = (
            f"This model's maximum context length is {window} tokens. However, you requested "
            f"{prompt + answer} tokens ({prompt} in the messages, {answer} in the completion). "
            "Please reduce the length of the messages or completion."
        )
        code = "context_length_exceeded" if dialect == "openai" else ""
        body = error_body(dialect, 400, message, code=code)
    return RefusalError(400, body, name=CONTEXT_OVERFLOW)


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
    """Is a whole answer."""

    deltas: tuple[Mapping[str, Any], ...]
    """One a token."""
    finish_reason: str
    prompt_tokens: int
    cached_tokens: int
    reasoning_tokens: int

    def usage(self, written: int) -> dict[str, Any]:
        """Return the usage when so many tokens were written."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": written,
            "total_tokens": self.prompt_tokens + written,
            "prompt_cache_hit_tokens": self.cached_tokens,
            "prompt_cache_miss_tokens": self.prompt_tokens - self.cached_tokens,
            "prompt_tokens_details": {"cached_tokens": self.cached_tokens},
            "completion_tokens_details": {"reasoning_tokens": min(self.reasoning_tokens, written)},
        }

    def message(self, count: int) -> dict[str, Any]:
        """Return the first tokens as one message."""
        deltas = self.deltas[:count]
        text = "".join(str(delta.get("content") or "") for delta in deltas)
        made: dict[str, Any] = {"role": "assistant", "content": text}
        if self.reasoning_tokens:
            thoughts = (str(delta.get("reasoning_content") or "") for delta in deltas)
            made["reasoning_content"] = "".join(thoughts)
        calls: list[dict[str, Any]] = []
        for each in (call for delta in deltas for call in delta.get("tool_calls", ())):
            function = each["function"]
            if "id" in each:
                calls.append({"id": each["id"], "type": "function", "function": dict(function)})
            else:
                calls[-1]["function"]["arguments"] += function["arguments"]
        return made | ({"tool_calls": calls} if calls else {})


def compose(ask: Ask, fault: Fault, settings: SimSettings, cached_tokens: int) -> Composition:
    """Return the answer to a request.

    The words come from the seed and the user's last words alone: another simulator with this seed
    says the same, so that a continuation can be told from a new answer.
    """
    rng = random.Random(f"{settings.seed}/{ask.question}")
    tools = ask.wanted_tools()
    thinks = ask.thinks(settings.thinking)
    reasoning = fault.reasoning if fault.reasoning >= 0 else settings.reasoning_tokens * thinks
    thoughts = [{"content": None, "reasoning_content": t} for t in sentence(rng, reasoning, "")]
    if tools:
        said = _tool_deltas(tools, fault, rng)
        reason = "tool_calls"
    else:
        words = shortened(_words(ask, fault, settings, rng), ask.stops)
        said = [{"content": word} for word in words]
        reason = "stop"
    deltas = [*thoughts, *said]
    limit = ask.max_tokens
    if limit is not None and len(deltas) > limit:
        deltas, reason = deltas[:limit], "length"
    return Composition(
        deltas=tuple(deltas),
        finish_reason=fault.finish_reason or reason,
        prompt_tokens=ask.prompt_tokens,
        cached_tokens=cached_tokens,
        reasoning_tokens=reasoning,
    )


def _words(ask: Ask, fault: Fault, settings: SimSettings, rng: random.Random) -> list[str]:
    schema = ask.schema()
    if schema is not None:
        return sliced(as_json(instance(schema)))
    if fault.text or settings.answer:
        words = spoken(fault.text or settings.answer, fault.tokens)
    else:
        words = sentence(rng, fault.tokens or settings.answer_tokens, ask.question)
    prefix = ask.prefix
    text = "".join(words)
    if prefix and text.startswith(prefix):
        return _after(words, len(prefix))
    return words


def _after(words: list[str], length: int) -> list[str]:
    """Return the words without so many characters at their beginning."""
    left: list[str] = []
    for word in words:
        if rest := word[length:]:
            left.append(rest)
        length = max(0, length - len(word))
    return left


def _tool_deltas(
    tools: list[Mapping[str, Any]], fault: Fault, rng: random.Random
) -> list[dict[str, Any]]:
    deltas: list[dict[str, Any]] = []
    for index, function in enumerate(tools):
        arguments = as_json(instance(function.get("parameters", {"type": "object"})))
        if fault.bad_arguments:
            arguments = arguments[: len(arguments) // 2]
        name = {"name": function.get("name"), "arguments": ""}
        first = {
            "index": index,
            "id": f"call_{rng.getrandbits(64):016x}",
            "type": "function",
            "function": name,
        }
        deltas.append({"content": None, "tool_calls": [first]})
        deltas += [
            {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
            for piece in sliced(arguments)
        ]
    return deltas


class PromptCache:
    """Remembers the beginnings of prompts, as providers do to bill them less."""

    def __init__(self) -> None:
        """Start empty."""
        self._known: OrderedDict[bytes, None] = OrderedDict()

    def take(self, ask: Ask) -> int:
        """Return how many tokens of the prompt were seen before, in whole blocks; keep it."""
        digest = hashlib.sha256(ask.model.encode())
        seen = tokens = 0
        for message, count in zip(ask.messages, ask.message_tokens, strict=True):
            digest.update(f"{message.get('role')}\0{content(message)}\0".encode())
            tokens += count
            key = digest.digest()
            if key in self._known:
                seen = tokens
            self._known[key] = None
            self._known.move_to_end(key)
        while len(self._known) > MAX_CACHED:
            self._known.popitem(last=False)
        return seen // CACHE_BLOCK * CACHE_BLOCK
