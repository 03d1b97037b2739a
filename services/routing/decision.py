"""Decides, before anyone waits, where a run goes and how it had better call the model."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from services.routing.board import HealthBoard, Placement
from services.routing.record import MAX_VIEW_AGE_S, DependencyView
from services.runtime.circuit import BreakerState
from services.runtime.topology import MODEL, TOOL

TIGHT_RATIO = 0.6
"""A model that usually needs more of the time there is gets a compressed context: reading it is
what takes the time before the first word."""
TRIAL_RATIO = 0.2
"""The part of the runs that still ask a model whose breaker is half-open, so that it can close."""


class ModelRoute(StrEnum):
    """Says which model a run had better ask."""

    PRIMARY = "primary"
    BACKUP = "backup"


class ContextSize(StrEnum):
    """Says how much of the conversation the model had better be given."""

    FULL = "full"
    COMPRESSED = "compressed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAdvice:
    """Says how a run had better call the model, and why."""

    route: ModelRoute = ModelRoute.PRIMARY
    context: ContextSize = ContextSize.FULL
    reason: str = ""
    """`model_open`, `model_half_open`, `model_trial`, `model_slow` or `model_tight`; empty when
    nothing speaks against the primary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteDecision:
    """Says where a run goes and how."""

    placement: Placement
    advice: ModelAdvice
    broken_tools: tuple[str, ...]
    """Tools of the agent that are cut off at every replica."""

    @property
    def replica(self) -> str:
        """Return the replica's own name, or its address while it has told none."""
        return self.placement.record.pod or self.placement.record.address

    @property
    def reason(self) -> str:
        """Return why, in words that programs can read: with commas between them."""
        words = [self.placement.why.value]
        if self.advice.reason:
            words.append(self.advice.reason)
        words += [f"tool_cut_off:{tool}" for tool in self.broken_tools]
        return ",".join(words)


def decide(
    board: HealthBoard,
    tools: Iterable[str],
    wait_s: float,
    now: float,
    chance: random.Random,
    blocked: frozenset[str] = frozenset(),
) -> RouteDecision:
    """Return where the next run goes and how.

    Args:
        board: what is known of the replicas.
        tools: what the agent cannot do without.
        wait_s: how long the replica could wait for the model's first word.
        now: the instant.
        chance: picks the runs that try a half-open model.
        blocked: the addresses to which nothing can be sent at this moment.
    """
    placement = board.place(blocked)
    views = [record.latest_view() for record in board.records.values() if not record.away]
    fresh = [view for view in views if now - view.told_at <= MAX_VIEW_AGE_S]
    own = placement.record.latest_view()
    known = own if own in fresh else max(fresh, key=lambda view: view.told_at, default=None)
    return RouteDecision(
        placement=placement,
        advice=ModelAdvice() if known is None else advise(known, wait_s, chance),
        broken_tools=cut_off(tools, fresh),
    )


def advise(view: DependencyView, wait_s: float, chance: random.Random) -> ModelAdvice:
    """Return how a run had better call the model.

    Args:
        view: how its replica sees the model, or the replica that has looked last.
        wait_s: how long the replica could wait for the model's first word.
        chance: picks the runs that try a half-open model.
    """
    state = view.breakers.get(MODEL)
    if state is BreakerState.OPEN:
        return _backup("model_open")
    if state is BreakerState.HALF_OPEN:
        if chance.random() >= TRIAL_RATIO:
            return _backup("model_half_open")
        return ModelAdvice(reason="model_trial")
    mean_s = view.mean_s.get(MODEL, 0.0)
    if mean_s > wait_s:
        return _backup("model_slow")
    if mean_s > TIGHT_RATIO * wait_s:
        return ModelAdvice(context=ContextSize.COMPRESSED, reason="model_tight")
    return ModelAdvice()


def cut_off(tools: Iterable[str], views: Sequence[DependencyView]) -> tuple[str, ...]:
    """Return those of the tools whose breaker is open at every replica that has told lately."""
    if not views:
        return ()
    return tuple(
        tool
        for tool in tools
        if all(view.breakers.get(f"{TOOL}/{tool}") is BreakerState.OPEN for view in views)
    )


def _backup(reason: str) -> ModelAdvice:
    return ModelAdvice(route=ModelRoute.BACKUP, context=ContextSize.COMPRESSED, reason=reason)
