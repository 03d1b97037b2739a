"""Defines what a tool file exports."""

import inspect
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, JsonValue

from services.runtime.call import Fallback, Group
from services.tool.context import ToolContext
from services.tool.errors import ToolDeclarationError

ArgumentsT = TypeVar("ArgumentsT", bound=BaseModel)

LEAST_TIMEOUT_RATIO = 0.2
"""The part of a tool's declared timeout that no adaptive timeout goes below."""
SLOW_CALL_S = 2.0
"""After so long a call is slow, unless the tool says otherwise."""
SLOW_RATIO = 0.8
"""The part of a tool's own timeout after which a call is slow, where that comes first."""
MAX_CACHE_AGE_S = 7 * 24 * 3600.0
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


@dataclass(frozen=True, slots=True)
class Artifact:
    """Carries a file that a tool made."""

    name: str
    """File name with its suffix."""
    media_type: str
    """Such as `application/pdf`."""
    content: bytes
    """The whole file."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """Carries what a tool answers."""

    data: dict[str, JsonValue]
    """The answer as JSON; every number in it is finite."""
    artifacts: tuple[Artifact, ...] = field(default=())
    """Files that belong to the answer."""


# What the four mean, and an example to copy into the refusal of a file that lacks one.
_MUST_DECLARE = {
    "timeout_s": "timeout_s=2.0 (longest execution, in seconds)",
    "max_concurrency": "max_concurrency=8 (executions at the same time)",
    "fallback": "fallback=Fallback.NONE (what callers may give without an answer)",
    "idempotent": "idempotent=True (whether running it twice changes nothing)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool(Generic[ArgumentsT]):
    """Declares one tool; a tool file exports it as `TOOL`."""

    name: str
    """Lower-case letters, digits and underscores; unique in the registry."""
    description: str
    """One sentence for people and for models that choose a tool."""
    arguments: type[ArgumentsT]
    """The arguments: a pydantic model, frozen, that forbids unknown names."""
    run: Callable[[ArgumentsT, ToolContext], Awaitable[ToolResult]]
    """An async function. It raises a SixhopError when it cannot answer, never returns one."""
    timeout_s: float
    """Longest execution, in seconds; has no default on purpose."""
    max_concurrency: int
    """Most executions at the same time in one process; has no default on purpose."""
    fallback: Fallback | tuple[Fallback, ...]
    """What callers may give when the tool cannot answer, one or several; no default on purpose."""
    idempotent: bool
    """Whether a second execution changes nothing; has no default on purpose."""
    group: Group = Group.CORE
    """The bulkhead that its calls share."""
    slow_call_s: float | None = None
    """A call that takes longer is slow, in seconds; three slow ones of five open its breaker. None
    takes 2 s, or less for a tool that gives up so soon that it would never be slow."""
    cache_age_s: float = 0.0
    """How old an answer may be that is given again, in seconds; Fallback.CACHE needs it."""
    default: dict[str, JsonValue] | None = None
    """What is given as the default; Fallback.DEFAULT needs it."""
    min_timeout_s: float | None = None
    """No adaptive timeout goes below, in seconds; None takes a fifth of `timeout_s`. A tool that
    waits for the model needs more than one that computes."""

    def __new__(cls, *_: object, **declared: Any) -> "Tool[ArgumentsT]":
        """Refuse a declaration that leaves out one of the four things.

        The type checker says the same, but a tool file of a user's may never meet one.
        """
        missing = [name for name in _MUST_DECLARE if name not in declared]
        if missing:
            raise ToolDeclarationError(
                f"the tool {declared.get('name', '?')!r} does not declare {', '.join(missing)}; "
                f"add to Tool(...): {'; '.join(_MUST_DECLARE[name] for name in missing)}",
                missing=missing,
            )
        return object.__new__(cls)

    def __post_init__(self) -> None:
        """Refuse values that cannot work."""
        problem = _problem(self) or _fallback_problem(self)
        if problem:
            raise ToolDeclarationError(f"the tool {self.name!r}: {problem}")

    @property
    def fallbacks(self) -> tuple[Fallback, ...]:
        """Return what callers may give, best first; nothing when they must report the error."""
        declared = (self.fallback,) if isinstance(self.fallback, Fallback) else self.fallback
        return tuple(kind for kind in Fallback if kind in declared and kind is not Fallback.NONE)

    @property
    def slow_after_s(self) -> float:
        """Return after how many seconds a call is slow."""
        if self.slow_call_s is not None:
            return self.slow_call_s
        return min(SLOW_CALL_S, SLOW_RATIO * self.timeout_s)

    @property
    def least_timeout_s(self) -> float:
        """Return what no adaptive timeout goes below.

        What a tool took lately says little about a larger question, so its own timeout, which is
        made for the largest, counts for a part.
        """
        if self.min_timeout_s is not None:
            return self.min_timeout_s
        return LEAST_TIMEOUT_RATIO * self.timeout_s


def _problem(tool: Any) -> str:
    # Any: a tool file that no type checker has seen may hold anything.
    if not isinstance(tool.name, str) or not _NAME.fullmatch(tool.name):
        return "name must be lower-case letters, digits and underscores, such as fx_rate"
    if not isinstance(tool.description, str) or not tool.description.strip():
        return "description must say in one sentence what the tool does"
    if not (isinstance(tool.arguments, type) and issubclass(tool.arguments, BaseModel)):
        return "arguments must be a pydantic model class"
    config = tool.arguments.model_config
    if config.get("extra") != "forbid" or not config.get("frozen"):
        return 'arguments must set model_config = ConfigDict(frozen=True, extra="forbid")'
    if not inspect.iscoroutinefunction(tool.run):
        return "run must be an async function of (arguments, context)"
    if not _is_number(tool.timeout_s, int, float) or not 0 < tool.timeout_s <= 3600:
        return "timeout_s must be above 0 and at most 3600 seconds"
    if not _is_number(tool.max_concurrency, int) or not 1 <= tool.max_concurrency <= 1024:
        return "max_concurrency must be a whole number from 1 to 1024"
    if not isinstance(tool.group, Group):
        return "group must be a Group, such as Group.CORE"
    if not isinstance(tool.idempotent, bool):
        return "idempotent must be True or False"
    slow_s = tool.slow_call_s
    if slow_s is not None and not (_is_number(slow_s, int, float) and 0 < slow_s <= 3600):
        return "slow_call_s must be above 0 and at most 3600 seconds, or None"
    least_s = tool.min_timeout_s
    if least_s is not None and not (_is_number(least_s, int, float) and least_s > 0):
        return "min_timeout_s must be above 0 seconds, or None"
    return ""


def _fallback_problem(tool: Any) -> str:
    declared = tool.fallback if isinstance(tool.fallback, tuple) else (tool.fallback,)
    if not declared or not all(isinstance(kind, Fallback) for kind in declared):
        return "fallback must be a Fallback, such as Fallback.NONE, or a tuple of them"
    if Fallback.NONE in declared and len(declared) > 1:
        return "fallback says NONE, that callers must report the error, and something else as well"
    if Fallback.BACKUP in declared:
        return "fallback BACKUP is for models; a tool declares CACHE, DEFAULT, PARTIAL or SKIP"
    age_s = tool.cache_age_s
    if not _is_number(age_s, int, float) or not 0 <= age_s <= MAX_CACHE_AGE_S:
        return f"cache_age_s must be 0 to {MAX_CACHE_AGE_S:.0f} seconds"
    if (Fallback.CACHE in declared) is not (age_s > 0):
        return "Fallback.CACHE and a cache_age_s above 0 go together"
    if Fallback.CACHE in declared and not tool.idempotent:
        return "an answer of a tool that is not idempotent must not be given again: no CACHE"
    if (Fallback.DEFAULT in declared) is not (tool.default is not None):
        return "Fallback.DEFAULT and a default go together"
    if tool.default is not None and not is_json(tool.default):
        return "default must be a dict that JSON can hold, without infinite numbers"
    return ""


def is_json(data: object) -> bool:
    """Tell whether data is an object of JSON; not a number and infinity are none."""
    try:
        json.dumps(data, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return isinstance(data, dict)


def _is_number(value: object, *kinds: type) -> bool:
    return isinstance(value, kinds) and not isinstance(value, bool)
