"""Shows a plan, for people and for programs."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gateway.cli.console import columns_table, length_text
from gateway.planning.ejection import Ejection
from gateway.planning.plan import Plan
from gateway.planning.pools import Pool, group_sizes
from gateway.planning.stores import StorePlan
from gateway.planning.tiers import Tier
from gateway.sizes import BUSY_RATIO, CPU_RATIO
from services.runtime.call import Group
from services.runtime.topology import LLM

WORTH_TELLING = 0.001
"""One in a thousand answers that are cut is what somebody notices."""
_FULL_REDIS = 0.7
_WITHOUT_REDIS = {
    "runs": "without gateway.runs.redis_url each gateway keeps its own",
    "quota": "limit fewer tenants, or let each gateway count for itself, without "
    "gateway.quota_redis_url",
    "board": "raise routing.board.share_interval_s",
}


def document(plan: Plan, source: str) -> dict[str, Any]:
    """Return a plan for programs; what has no end is null.

    Args:
        plan: the plan.
        source: the file of the configuration; empty without one.
    """
    sizes = group_sizes(plan.pools)
    told: dict[str, Any] = _finite(
        {
            "ok": True,
            "source": source,
            "traffic": plan.traffic.model_dump(mode="json"),
            "tiers": [asdict(tier) for tier in plan.tiers],
            "pools": [asdict(pool) for pool in plan.pools],
            "connections": [asdict(each) for each in plan.connections],
            "ejections": [asdict(each) for each in plan.ejections],
            "stores": asdict(plan.stores),
            "cut_ratios": dict(plan.cut_ratios),
            "permits": {group.value: count for group, count in sizes.items()},
            "totals": totals(plan.tiers) | {"sidecar_memory_mib": _sidecar_mib(plan)},
            "notes": list(notes(plan)),
        }
    )
    return told


def totals(tiers: Iterable[Tier]) -> dict[str, float]:
    """Return what all tiers take together, without the provider."""
    own = list(tiers)
    return {
        "pods": sum(tier.pods for tier in own),
        "max_pods": sum(tier.max_pods for tier in own),
        "cores": sum(tier.cores for tier in own),
        "memory_mib": sum(tier.memory_mib * tier.pods for tier in own),
        "sidecar_cores": sum(tier.sidecar_cores for tier in own),
    }


def _sidecar_mib(plan: Plan) -> float:
    return plan.traffic.sidecar.memory_mib * sum(tier.pods for tier in plan.tiers)


def show(console: Console, plan: Plan, source: str) -> None:
    """Show a plan to people.

    Args:
        console: where.
        plan: the plan.
        source: the file of the configuration; empty without one.
    """
    traffic = plan.traffic
    console.print(Text(f"configuration: {source or 'no file; defaults and environment'}"))
    peak = f", {traffic.qps:g} on average" if traffic.peak_factor > 1 else ""
    console.print(
        f"traffic: {traffic.peak_qps:,g} runs a second at the peak{peak}; per run: "
        f"tool calls {traffic.tool_calls:g}, model calls {traffic.model_calls:g}, "
        f"events {traffic.events:g}; the provider takes {traffic.llm.p50_s:g} s (p50), "
        f"{traffic.llm.p99_s:g} s (p99)",
        soft_wrap=True,
    )
    for title, table in (
        (
            f"\nof each tier, at the peak; its HPA aims at {CPU_RATIO:.0%} of a core, and "
            f"{BUSY_RATIO:.0%} of the calls where the first are refused:",
            _tier_table(plan.tiers),
        ),
        ("\npermits of one pod:", _pool_table(plan.pools)),
        ("\nsidecars:", _connection_table(plan)),
        ("\nwhat one sick pod costs until it is ejected:", _ejection_table(plan.ejections)),
        ("\nstores:", _store_table(plan.stores)),
    ):
        console.print(title)
        console.print(table)
    sums = totals(plan.tiers)
    console.print(
        f"\ntogether: {sums['pods']:,.0f} pods, {sums['cores']:,.1f} cores in use, "
        f"{sums['memory_mib'] / 1024:,.1f} GiB; their sidecars {sums['sidecar_cores']:,.1f} cores, "
        f"{_sidecar_mib(plan) / 1024:,.1f} GiB",
        soft_wrap=True,
    )
    for text in notes(plan):
        console.print(Text(f"note: {text}", style="yellow"), soft_wrap=True)


def notes(plan: Plan) -> Iterator[str]:
    """Yield what somebody has to do or to know."""
    yield from _permit_notes(plan.pools)
    if plan.traffic.cpu_utilisation > CPU_RATIO:
        yield (
            f"cpu_utilisation = {plan.traffic.cpu_utilisation:g} plans for fuller pods than HPAs "
            f"let there be, which aim at {CPU_RATIO:g} of a core: there will be more of them"
        )
    for path, ratio in plan.cut_ratios.items():
        if ratio >= WORTH_TELLING:
            yield (
                f"{ratio:.1%} of the provider's answers outlive their deadline on {path}: those "
                "runs are answered degraded; raise deadline.default_deadline_s, or ask for shorter "
                "answers"
            )
    for each in plan.ejections:
        if each.breaker_opens:
            yield (
                f"{each.tier}: a caller makes so few calls that the failures which eject one pod "
                "may open its breaker for all of them, for breaker.open_duration_s"
            )
    tight = [each.tier for each in plan.ejections if each.busy_after_most > 1]
    if tight:
        yield (
            f"with as many pods ejected as may be, the others of {', '.join(tight)} are overloaded "
            "until the HPA has added some; admission refuses what is too much meanwhile"
        )
    yield from _store_notes(plan.stores)
    most_mib = plan.traffic.redis.maxmemory_mib
    if plan.stores.memory_mib > most_mib:
        yield (
            f"what Redis keeps, {plan.stores.memory_mib:,.0f} MiB, is more than its maxmemory of "
            f"{most_mib:,.0f} MiB: old runs go before their time; raise it, or lower "
            "gateway.runs.max_age_s or gateway.runs.max_count"
        )
    yield (
        "each tool has its own max_concurrency as well, which must hold its part of the permits; "
        "and one tenant alone may take bulkhead.lone_tenant_ratio of them"
    )


def _store_notes(stores: StorePlan) -> Iterator[str]:
    if stores.redis_ratio > _FULL_REDIS:
        yield (
            f"one Redis for all would be {stores.redis_ratio:.0%} busy: give runs, quota and board "
            "one each"
        )
    for load in stores.loads:
        if load.redis_ratio > _FULL_REDIS:
            yield (
                f"{load.use} alone would keep a Redis {load.redis_ratio:.0%} busy, and hops know "
                f"no shards: {_WITHOUT_REDIS[load.use]}"
            )


def _permit_notes(pools: Sequence[Pool]) -> Iterator[str]:
    for group, count in group_sizes(pools).items():
        of_group = [pool for pool in pools if pool.group is group]
        short = [pool for pool in of_group if pool.too_small]
        if short:
            worst = max(short, key=lambda pool: pool.permits)
            yield (
                f"bulkhead.{group}.permits = {worst.configured} is too small: {worst.caller} has "
                f"{worst.load:.1f} in use on average; set it to {count}"
            )


def _tier_table(tiers: Iterable[Tier]) -> Table:
    table = columns_table(
        ("tier",),
        ("calls/s", "takes", "own", "in flight", "cores", "pods", "HPA", "in flight/pod"),
    )
    table.add_column("because", no_wrap=True)
    table.add_column("CPU", justify="right")
    table.add_column("MiB/pod", justify="right")
    for tier in tiers:
        first = (tier.name, number(tier.calls_per_s), length_text(tier.time.mean_s))
        if tier.name == LLM:
            table.add_row(*first, "", number(tier.in_flight))
            continue
        table.add_row(
            *first,
            length_text(tier.own_s),
            number(tier.in_flight),
            number(tier.cores),
            str(tier.pods),
            f"{tier.min_pods}–{tier.max_pods}",
            str(tier.inflight_target or "no limit"),
            tier.because,
            f"{tier.busy_ratio:.0%}",
            number(tier.memory_mib),
        )
    return table


def _pool_table(pools: Iterable[Pool]) -> Table:
    table = columns_table(
        ("caller", "group"), ("in use", "p99", "permits", "set", "then wait", "on average")
    )
    table.add_column("for", overflow="fold")
    for pool in pools:
        waits = length_text(pool.mean_wait_s) if math.isfinite(pool.mean_wait_s) else "no end"
        table.add_row(
            pool.caller,
            pool.group.value,
            number(pool.load),
            str(pool.p99),
            str(pool.permits),
            str(pool.configured),
            ratio_text(pool.wait_ratio),
            "" if pool.wait_ratio < WORTH_TELLING else waits,
            ", ".join(pool.callees),
        )
    return table


def _connection_table(plan: Plan) -> Table:
    table = columns_table(("of", "to"), ("http2MaxRequests", "connections of all"))
    for each in plan.connections:
        most = f"{each.max_requests:,}" if each.max_requests else "no limit"
        table.add_row(each.caller, each.callee, most, f"{each.connections:,}")
    return table


def _ejection_table(ejections: Iterable[Ejection]) -> Table:
    table = columns_table(
        ("sick pod of",),
        (
            "sidecars",
            "calls lost",
            "of all",
            "one knows",
            "all know",
            "if slow: lost",
            "known",
            "most out",
            "CPU then",
        ),
    )
    for each in ejections:
        slow = ("", "")
        if each.slow_calls is not None and each.slow_s is not None:
            slow = (number(each.slow_calls), length_text(each.slow_s))
        table.add_row(
            each.tier,
            str(each.callers),
            number(each.failing_calls),
            ratio_text(each.failing_ratio),
            length_text(each.caller_s),
            length_text(each.all_s),
            *slow,
            str(each.max_ejected),
            ratio_text(each.busy_after_most)
            if math.isfinite(each.busy_after_most)
            else "none left",
        )
    return table


def _store_table(stores: StorePlan) -> Table:
    table = columns_table(
        ("store", "use"),
        ("commands/s", "in scripts/s", "of a core", "KiB/s read", "MiB", "connections"),
    )
    table.add_column("configured")
    for load in stores.loads:
        table.add_row(
            "Redis",
            load.use,
            number(load.commands_per_s),
            number(load.inside_per_s),
            ratio_text(load.redis_ratio),
            number(load.kib_per_s),
            number(load.memory_mib),
            f"{load.connections:,}",
            "yes" if load.configured else "no",
        )
    table.add_row("Redis", "together", "", "", ratio_text(stores.redis_ratio))
    nothing = ("",) * 5
    table.add_row("Postgres", "", number(stores.postgres_per_s), *nothing, "no hop uses it")
    return table


def number(value: float) -> str:
    """Return a number for people, with two digits or more that count."""
    if value >= 100 or value == round(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2g}"


def ratio_text(ratio: float) -> str:
    """Return a part of something for people."""
    if 0 < ratio < 0.01:
        return f"{ratio:.1%}" if ratio >= WORTH_TELLING else "<0.1%"
    return f"{ratio:.0%}"


def _finite(value: Any) -> Any:
    """Return a document without infinities, which JSON does not know."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    if isinstance(value, Group):
        return value.value
    return None if isinstance(value, float) and not math.isfinite(value) else value
