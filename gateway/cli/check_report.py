"""Shows what a check has found, for people and for programs."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gateway.cli.access_view import access_document, access_lines
from gateway.cli.console import length_text
from gateway.cli.observed import Observed
from gateway.cli.observed_view import observed_document, show_observed
from gateway.cli.rooms import Opinion
from gateway.manifests.checking import RULES as MANIFEST_RULES
from gateway.manifests.checking import ManifestReport
from services.runtime.call import Group, Mode
from services.runtime.checks.finding import Finding, Rule, Severity
from services.runtime.config import Config, ConfigError
from services.runtime.ladder import RULES
from services.runtime.policies.bulkhead import BulkheadConfig
from services.runtime.rungs import Rung, path_ladder, stand_ins, unary_ladder
from services.runtime.topology import GATEWAY

PASSED, FAILED, WARNED, OFF = "passed", "failed", "warned", "off"
_SIGNS = {PASSED: ("ok", "green"), FAILED: ("FAIL", "red"), WARNED: ("warn", "yellow")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Holds all that a check knows."""

    config: Config | None
    """The configuration; None when it cannot be read."""
    opinion: Opinion
    """What is wrong."""
    manifests: ManifestReport | None = None
    """What was looked at in manifests; None when none were given."""
    observed: Observed | None = None
    """What running hops have measured; None when nobody asked them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """Describes the size of one bulkhead."""

    group: Group
    permits: int
    """Calls under way at once."""
    max_queued: int
    """Calls waiting at once."""
    expected_qps: float
    """The declared rate, calls per second; 0 when none is declared."""
    expected_latency_s: float
    """How long one call is declared to take, seconds."""


def capacities(config: Config) -> list[Capacity]:
    """Return the size of every bulkhead; none when the sizes cannot be read."""
    try:
        bulkhead = config.policy("bulkhead", BulkheadConfig)
    except ConfigError:
        return []
    groups = (Group.CORE,) if bulkhead.shared else Group
    sizes = {group: bulkhead.size(group) for group in groups}
    return [
        Capacity(
            group=group,
            permits=size.allowed,
            max_queued=size.max_queued,
            expected_qps=size.expected_qps,
            expected_latency_s=size.expected_latency_s,
        )
        for group, size in sizes.items()
    ]


def rule_state(rule: Rule, report: Report) -> str:
    """Return what became of one rule."""
    if rule.engine and report.config is not None and not report.config.engine.enabled:
        return OFF
    return _state(rule.name, report.opinion.findings)


def _state(name: str, findings: Iterable[Finding]) -> str:
    severities = {finding.severity for finding in findings if finding.rule == name}
    if Severity.VIOLATION in severities:
        return FAILED
    return WARNED if severities else PASSED


def document(report: Report) -> dict[str, Any]:
    """Return the whole report for programs."""
    opinion = report.opinion
    problems = [*opinion.unreadable, *_texts(opinion, Severity.VIOLATION)]
    return {
        "ok": not problems,
        "source": report.config.source if report.config else "",
        "problems": problems,
        "warnings": _texts(opinion, Severity.WARNING),
        "findings": [asdict(finding) for finding in opinion.findings],
        **_config_document(report),
        "manifests": _manifest_document(report),
        "observed": _observed_document(report),
    }


def _observed_document(report: Report) -> dict[str, Any] | None:
    if report.observed is None or report.config is None:
        return None
    return observed_document(report.observed)


def _manifest_document(report: Report) -> dict[str, Any] | None:
    told = report.manifests
    if told is None:
        return None
    return {
        "file_count": told.file_count,
        "document_count": told.document_count,
        "hops": list(told.hops),
        "ignored": told.ignored,
        "rules": [
            {"name": name, "holds": holds, "state": _state(name, told.findings)}
            for name, holds in MANIFEST_RULES.items()
        ],
    }


def _config_document(report: Report) -> dict[str, Any]:
    config = report.config
    if config is None:
        return {"rules": [], "capacities": [], "ladders": {}, "stand_ins": [], "access": None}
    return {
        "rules": [
            {"name": rule.name, "holds": rule.holds, "state": rule_state(rule, report)}
            for rule in RULES
        ],
        "capacities": [asdict(each) for each in capacities(config)],
        "ladders": {
            name: [
                {
                    "hop": rung.hop,
                    "deadline_s": round(rung.deadline_s, 4),
                    "wait_s": round(rung.wait_s, 4),
                }
                for rung in rungs
            ]
            for name, rungs in _ladders(config).items()
        },
        "stand_ins": [
            {
                "path": list(turn.leg.path),
                "after_s": round(turn.after_s, 4),
                "left_s": round(turn.own_time_s, 4),
                "wait_s": round(turn.leg.silence_s, 4),
            }
            for turn in stand_ins(config.deadline.default_deadline_s, config)
        ],
        "access": access_document(config),
    }


def show(console: Console, report: Report) -> None:
    """Show the whole report to people."""
    if report.config is not None:
        _show_config(console, report.config)
        for rule in RULES:
            _show_state(console, rule.holds, rule_state(rule, report))
    if report.manifests is not None:
        _show_manifests(console, report.manifests)
    if report.observed is not None and report.config is not None:
        show_observed(console, report.observed, report.config)
    opinion = report.opinion
    problems = [*opinion.unreadable, *_texts(opinion, Severity.VIOLATION)]
    warnings = _texts(opinion, Severity.WARNING)
    for text in problems:
        console.print(Text(f"problem: {text}", style="red"), soft_wrap=True)
    for text in warnings:
        console.print(Text(f"warning: {text}", style="yellow"), soft_wrap=True)
    if not problems:
        also = f"; {len(warnings)} to look at" if warnings else ""
        console.print(Text(f"no problem found{also}", style="green"))


def _show_config(console: Console, config: Config) -> None:
    deadline = config.deadline
    source = config.source or "no file; defaults and environment"
    console.print(Text(f"configuration: {source}"), soft_wrap=True)
    console.print(
        f"of a deadline of {deadline.default_deadline_s:g} s each hop gets, with a share of "
        f"{deadline.share:g}:",
        soft_wrap=True,
    )
    console.print(_ladder_table(_ladders(config)))
    for turn in stand_ins(deadline.default_deadline_s, config):
        console.print(
            Text(
                f"{turn.leg.name}: a silent model is given up after {length_text(turn.after_s)}; "
                f"its stand-in then has {length_text(turn.own_time_s)}"
            ),
            soft_wrap=True,
        )
    sizes = capacities(config)
    if sizes:
        console.print(f"permits of one process ({_bulkheads_state(config)}):", soft_wrap=True)
        console.print(_capacity_table(sizes))
    for line in access_lines(config):
        console.print(Text(line), soft_wrap=True)


def _show_manifests(console: Console, told: ManifestReport) -> None:
    hops = ", ".join(told.hops) or "none"
    console.print(
        f"manifests: {told.document_count} objects in {told.file_count} files; they run: {hops}",
        soft_wrap=True,
    )
    if told.ignored:
        kinds = ", ".join(f"{count} {kind}" for kind, count in told.ignored.items())
        console.print(Text(f"not looked at: {kinds}", style="dim"), soft_wrap=True)
    for name, holds in MANIFEST_RULES.items():
        _show_state(console, holds, _state(name, told.findings))


def _show_state(console: Console, holds: str, state: str) -> None:
    sign, style = _SIGNS.get(state, ("off", "dim"))
    console.print(Text(f"{sign:<4} {holds}", style=style), soft_wrap=True)


def _bulkheads_state(config: Config) -> str:
    if not config.engine.enabled:
        return "the engine is off: not in force"
    bulkhead = config.policy("bulkhead", BulkheadConfig)
    mode, shared = bulkhead.mode, bulkhead.shared
    if mode is not Mode.ENFORCE:
        return f"bulkhead.mode = {mode}: not in force"
    return "enforced, one pool for all" if shared else "enforced"


def _texts(opinion: Opinion, severity: Severity) -> list[str]:
    return [finding.text for finding in opinion.findings if finding.severity is severity]


def _ladders(config: Config) -> dict[str, list[Rung]]:
    deadline = config.deadline
    return {
        "unary": unary_ladder(deadline.default_deadline_s, deadline.share),
        "path": path_ladder(deadline.default_deadline_s, config),
    }


def _ladder_table(ladders: Mapping[str, list[Rung]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("hop")
    for heading in ("deadline as it runs", "longest wait for it", "if each call were unary"):
        table.add_column(heading, justify="right")
    for rung, unary in zip(ladders["path"], ladders["unary"], strict=True):
        first = rung.hop == GATEWAY
        table.add_row(
            rung.hop,
            length_text(rung.deadline_s),
            "" if first else length_text(rung.wait_s),
            length_text(unary.deadline_s),
        )
    return table


def _capacity_table(sizes: list[Capacity]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("group")
    for heading in ("permits", "may wait"):
        table.add_column(heading, justify="right")
    table.add_column("because")
    for each in sizes:
        reason = "set"
        if each.expected_qps > 0:
            reason = f"ceil({each.expected_qps:g}/s · {each.expected_latency_s:g} s / 0.8)"
        table.add_row(each.group, str(each.permits), str(each.max_queued), reason)
    return table
