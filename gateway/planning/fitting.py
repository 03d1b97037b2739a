"""Refuses a traffic that the deadlines of the configuration cannot hold."""

from collections.abc import Iterator, Sequence

from gateway.planning.flows import Flow, hop_of
from gateway.planning.queueing import longer_ratio
from gateway.planning.tiers import Tier
from gateway.planning.traffic import TOOL_GROUPS, Traffic
from services.runtime.config import Config
from services.runtime.policies.deadline import margin_s
from services.runtime.rungs import Leg, legs
from services.runtime.topology import DOMAIN, GATEWAY, LLM, MODEL, TOOL

_HALVINGS = 40


class PlanError(Exception):
    """Refuses to plan; says what does not fit, and what to change."""


def cut_ratios(traffic: Traffic, found: Sequence[Flow], config: Config) -> dict[str, float]:
    """Return the part of the provider's answers that outlives each path to it, 0–1, by path.

    Raises:
        PlanError: the median already does; names the path, what it leaves, and a fix.
    """
    told = {}
    for path in _paths(found):
        leg = _leg(path, config.deadline.default_deadline_s, config)
        if traffic.llm.p50_s >= leg.deadline_s:
            raise PlanError(_too_long(path, leg, traffic.llm.p50_s, config))
        told[leg.name] = longer_ratio(traffic.llm, leg.deadline_s)
    return told


def require_tools_fit(traffic: Traffic, config: Config) -> None:
    """Refuse tools that wait longer for what is outside than their callers wait for them.

    Raises:
        PlanError: names the group, what it has and a fix.
    """
    given_s = _leg((DOMAIN, TOOL), config.deadline.default_deadline_s, config).deadline_s
    for group in TOOL_GROUPS:
        spread = traffic.tool_cost(group).waits
        if traffic.tool_cost(group).calls > 0 and spread and spread.p50_s >= given_s:
            raise PlanError(
                f"the ladder cannot hold {group} tools: their median of {spread.p50_s:g} s is more "
                f"than the {given_s:.1f} s that a tool gets of a deadline of "
                f"{config.deadline.default_deadline_s:g} s; make them tasks, or raise "
                "deadline.default_deadline_s and calls.tool.step_timeout_s"
            )


def require_run_fits(tiers: Sequence[Tier], config: Config) -> None:
    """Refuse runs whose calls, one after the other, take longer than a run has.

    Raises:
        PlanError: names both lengths, and what takes most.
    """
    whole_s = next(tier.time.mean_s for tier in tiers if tier.name == GATEWAY)
    has_s = config.deadline.default_deadline_s
    if whole_s >= has_s - margin_s(has_s):
        raise PlanError(
            f"the ladder cannot hold it: a run takes {whole_s:.1f} s on average, and "
            f"deadline.default_deadline_s leaves it {has_s - margin_s(has_s):.1f} s; make fewer or "
            f"shorter calls, or raise it to {whole_s * 1.5:.0f}"
        )


def _paths(found: Sequence[Flow]) -> Iterator[tuple[str, ...]]:
    """Yield the ends of the paths to the provider that are used."""
    callers = {hop_of(flow.caller) for flow in found if flow.callee == MODEL}
    if TOOL in callers:
        yield (TOOL, MODEL, LLM)
    if DOMAIN in callers:
        yield (DOMAIN, MODEL, LLM)


def _leg(end: tuple[str, ...], deadline_s: float, config: Config) -> Leg:
    """Return the last edge of the path with this end."""
    return next(leg for leg in legs(deadline_s, config) if leg.path[-len(end) :] == end)


def _too_long(path: tuple[str, ...], leg: Leg, p50_s: float, config: Config) -> str:
    has_s = config.deadline.default_deadline_s
    return (
        f"the ladder cannot hold it: the provider's median of {p50_s:g} s is more than the "
        f"{leg.deadline_s:.1f} s that {leg.name} leaves of a deadline of {has_s:g} s; "
        f"{_longer(path, p50_s, config)}, or ask for shorter answers"
    )


def _longer(path: tuple[str, ...], p50_s: float, config: Config) -> str:
    """Return which deadline would do, if one does without other limits in its way."""
    low_s, high_s = config.deadline.default_deadline_s, config.deadline.max_deadline_s
    if _leg(path, high_s, config).deadline_s <= p50_s:
        between = " and ".join(f"calls.{hop}.step_timeout_s" for hop in path[:-1] if hop == TOOL)
        return f"no deadline up to deadline.max_deadline_s = {high_s:g} does" + (
            f" while {between} cuts it: raise that" if between else ": raise that"
        )
    for _ in range(_HALVINGS):
        middle_s = (low_s + high_s) / 2
        fits = _leg(path, middle_s, config).deadline_s > p50_s
        low_s, high_s = (low_s, middle_s) if fits else (middle_s, high_s)
    return f"raise deadline.default_deadline_s to {high_s:.1f} or more"
