"""Shows what running hops have measured, and the timeouts that are proposed."""

from dataclasses import asdict
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gateway.cli.console import length_text
from gateway.cli.hop_health import SERVING
from gateway.cli.observed import FEW, HUNG, LOOSE, TIGHT, Observed, Proposal, judge
from services.runtime.config import Config
from services.runtime.policies.adaptive import MIN_SAMPLES

_STYLES = {HUNG: "red", TIGHT: "red", LOOSE: "yellow", FEW: "dim"}


def observed_document(observed: Observed) -> dict[str, Any]:
    """Return what was measured and proposed, for programs."""
    return {
        "hops": dict(observed.hops),
        "callees": [
            {
                **asdict(each),
                "verdict": judge(each),
            }
            for each in observed.observations
        ],
        "proposals": [asdict(each) for each in observed.proposals if each.changes],
    }


def show_observed(console: Console, observed: Observed, config: Config) -> None:
    """Show what was measured and proposed, to people."""
    silent = [f"{hop} ({state})" for hop, state in observed.hops if state != SERVING]
    if silent:
        console.print(Text(f"not measured: {', '.join(silent)}", style="yellow"), soft_wrap=True)
    if not observed.answered:
        why = "" if config.engine.enabled else "; they do with [engine] enabled = true"
        console.print(f"the hops have measured none of their callees{why}", soft_wrap=True)
        return
    console.print(_table(observed))
    if any(judge(each) == FEW for each in observed.observations):
        console.print(
            Text(f"with fewer than {MIN_SAMPLES} calls a p99 is a guess", style="dim"),
            soft_wrap=True,
        )
    changes = [proposal for proposal in observed.proposals if proposal.changes]
    for proposal in changes:
        console.print(Text(_line(proposal), style="bold"), soft_wrap=True)
    if not changes:
        console.print("no timeout to change", soft_wrap=True)


def _line(proposal: Proposal) -> str:
    """Return a proposal as a line of `sixhop.toml`, with dotted keys that fit at its top.

    What a tool declares is changed in its own file, and told as a sentence.
    """
    if proposal.own:
        return (
            f"{proposal.setting}, as its file declares it: {proposal.proposed_s:g} s instead of "
            f"{proposal.declared_s:g} s: {proposal.because}"
        )
    return (
        f"{proposal.setting} = {proposal.proposed_s:g}  # not {proposal.declared_s:g}: "
        f"{proposal.because}"
    )


def _table(observed: Observed) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("hop", "calls to"):
        table.add_column(heading, no_wrap=True)
    for heading in ("calls", "p50", "p99", "declared"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("")
    for each in observed.observations:
        verdict = judge(each)
        table.add_row(
            each.hop,
            Text(each.key),
            str(each.call_count),
            length_text(each.p50_s),
            length_text(each.p99_s),
            length_text(each.declared_s),
            Text(verdict, style=_STYLES.get(verdict, "green")),
        )
    return table
