"""Decides what may be given in place of a tool's answer, as the tool declares it."""

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import orjson
from pydantic import JsonValue

from services.domain.directory import DeclaredTool
from services.domain.sources import DataSource
from services.runtime.call import Alternative, Degradation, Fallback
from services.runtime.policies.fallback import AnswerCache

AnswerT = TypeVar("AnswerT")

AGENTS_OWN = (Fallback.PARTIAL, Fallback.SKIP)
"""What an agent gives by itself; it needs no engine for that."""
LARGE_BYTES = 1024 * 1024
"""Digests of more data than this are made in a thread: a mebibyte takes two milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Is one execution of a tool, as far as it tells one answer from another."""

    name: str
    """The tool."""
    arguments: Mapping[str, JsonValue]
    sources: Sequence[DataSource]
    language: str
    tenant: str
    """An answer is never given to another tenant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Codec(Generic[AnswerT]):
    """Knows what the answer of a tool is on the wire, which nobody else here has to."""

    pack: Callable[[Mapping[str, JsonValue]], AnswerT]
    """Makes an answer of data."""
    dump: Callable[[AnswerT], bytes]
    """Makes the bytes that are kept: nobody can change them, and their weight is known."""
    load: Callable[[bytes], AnswerT]
    """Makes the answer of its bytes."""


class ToolFallbacks(Generic[AnswerT]):
    """Makes the alternatives of calls to tools, and keeps the answers that may be given again."""

    def __init__(self, codec: Codec[AnswerT], cache: AnswerCache | None) -> None:
        """Take where answers are kept; without the engine nobody would give them, so nowhere."""
        self._codec = codec
        self._cache = cache

    async def digest(self, tool: DeclaredTool, asked: Asked) -> str:
        """Return what tells a request from every other; empty when its answer is not kept."""
        if self._cache is None or Fallback.CACHE not in tool.fallbacks:
            return ""
        if sum(len(source.content) for source in asked.sources) > LARGE_BYTES:
            return await asyncio.to_thread(_digest, asked)
        return _digest(asked)

    def keep(self, tool: DeclaredTool, digest: str, answer: AnswerT) -> None:
        """Keep an answer that the tool itself has given."""
        if self._cache is not None and digest:
            dumped = self._codec.dump(answer)
            self._cache.keep(tool.callee.key, digest, dumped, size_bytes=len(dumped))

    def alternatives(
        self,
        tool: DeclaredTool,
        digest: str,
        *,
        partial: Mapping[str, JsonValue] | None,
        optional: bool,
        tell: Callable[[Degradation], None],
    ) -> list[Alternative]:
        """Return what may be given instead, best first.

        Args:
            tool: what the tool declares.
            digest: of the request.
            partial: what the agent has without this answer.
            optional: whether the agent can do without it.
            tell: is told what was given.
        """
        ready = {
            Fallback.DEFAULT: tool.default,
            Fallback.PARTIAL: partial,
            Fallback.SKIP: {} if optional else None,
        }
        found: list[Alternative] = []
        for kind in tool.fallbacks:
            if kind is Fallback.CACHE:
                kept = self._kept(tool, digest, tell)
                found += [kept] if kept is not None else []
            elif (data := ready.get(kind)) is not None:
                found.append(self._ready(kind, data, tell))
        return found

    def _kept(
        self, tool: DeclaredTool, digest: str, tell: Callable[[Degradation], None]
    ) -> Alternative | None:
        if self._cache is None or not digest:
            return None
        return self._cache.alternative(
            tool.callee.key,
            digest,
            max_age_s=tool.cache_age_s,
            load=self._codec.load,
            tell=tell,
        )

    def _ready(
        self, kind: Fallback, data: Mapping[str, JsonValue], tell: Callable[[Degradation], None]
    ) -> Alternative:
        async def give() -> AnswerT:
            return self._codec.pack(data)

        return Alternative(mechanism=kind, run=give, tell=tell)


def _digest(asked: Asked) -> str:
    """Return a digest of all that an answer depends on, none of which can run into the next."""
    parts = [
        asked.tenant,
        asked.language,
        asked.name,
        orjson.dumps(asked.arguments, option=orjson.OPT_SORT_KEYS).decode(),
        *(text for source in asked.sources for text in (source.name, source.digest)),
    ]
    return hashlib.sha256(orjson.dumps(parts)).hexdigest()
