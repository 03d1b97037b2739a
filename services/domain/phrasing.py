"""Reads what a model wrote, and tells whether it is whole and sticks to its sources."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from pydantic import JsonValue

from services.domain import wording
from services.domain.agent import TEMPLATE
from services.domain.ports import ToolResult
from services.domain.run import Partial, Run
from services.runtime.call import Fallback
from services.runtime.generation import Generation, Usage
from services.runtime.output_limit import CUT_FINISH
from services.runtime.switch import Switch

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


@dataclass(frozen=True, slots=True)
class Phrasing:
    """Holds what the `summarise` tool wrote."""

    text: str
    model: str
    cut: bool
    """True when the text ends at its token limit."""
    usage: Usage = field(default_factory=Usage)
    switch: Switch | None = None
    """Why the model that stands in wrote it; None for the first model's text."""


def template_only(text: str) -> Partial:
    """Return what an agent has without the `summarise` tool: the text of its template."""
    return Partial({"text": text, "model": TEMPLATE}, mechanism=TEMPLATE)


def phrasing_of(result: ToolResult | None) -> Phrasing | None:
    """Return the answer of the `summarise` tool in plain types; None when no model wrote one."""
    if result is None or result.data.get("model") == TEMPLATE:
        return None
    data = result.data
    return Phrasing(
        text=str(data.get("text", "")).strip(),
        model=str(data.get("model", "")),
        cut=data.get("finish_reason") == CUT_FINISH,
        usage=Usage(_count(data.get("input_tokens")), _count(data.get("output_tokens"))),
        switch=_switch(data.get("backup"), str(data.get("model", ""))),
    )


def told_unused(run: Run, phrasing: Phrasing, problem: str) -> bool:
    """Tell whether a text must not be used, and say so in the answer.

    Args:
        run: the run.
        phrasing: what the model wrote.
        problem: what a check has found in it, in the run's language; empty for nothing.
    """
    if phrasing.cut:
        problem = wording.ends_at_limit(run.language)
    if problem:
        reason = wording.not_used(phrasing.model, problem, run.language)
        run.degraded(mechanism=TEMPLATE, part="prose", reason=reason)
    return bool(problem)


def tell_if_switched(run: Run, phrasing: Phrasing | None, part: str) -> None:
    """Say so when the model that stands in wrote a part of the answer."""
    if phrasing is not None and phrasing.switch is not None:
        run.degraded(
            mechanism=Fallback.BACKUP.value,
            part=part,
            reason=wording.another_model(phrasing.switch, run.language),
            error_reason=phrasing.switch.error_reason,
        )


def _switch(told: JsonValue | None, model: str) -> Switch | None:
    if not isinstance(told, dict):
        return None
    return Switch(
        model=model,
        error_reason=str(told.get("error_reason", "")),
        origin_reason=str(told.get("origin_reason", "")),
        problem=str(told.get("problem", "")),
    )


def tell_if_cut(run: Run, generation: Generation, *, marked: bool = True) -> tuple[str, ...]:
    """Say so when a text that was already said ends at its token limit; return what is missing.

    Args:
        run: the run.
        generation: what was said.
        marked: whether the text itself shows it, for people who read nothing else.
    """
    if generation.finish_reason != CUT_FINISH:
        return ()
    own = run.options is not None and run.options.max_output_tokens > 0
    reason = wording.cut_off(generation.model, generation.limit, run.language, callers=own)
    if marked:
        run.say(" …")
    run.degraded(mechanism="partial", part="answer", reason=reason)
    return ("the end of the answer",)


def foreign_number(text: str, sources: Iterable[str]) -> str:
    """Return the first number of a text that none of its sources has; empty when there is none."""
    known = {_plain(number) for source in sources for number in _NUMBER.findall(source)}
    for number in _NUMBER.findall(text):
        if _plain(number) not in known:
            return str(number)
    return ""


def _plain(number: str) -> str:
    """Return a number without the marks of thousands: `1,000` and `1000` are the same."""
    return re.sub(r"[.,](?=\d{3}(?:\D|$))", "", number)


def _count(value: object) -> int:
    return int(value) if isinstance(value, int | float) else 0
