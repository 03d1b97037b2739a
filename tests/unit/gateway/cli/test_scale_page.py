"""Holds the page about scale to what the command prints."""

import json
import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gateway.cli.__main__ import app
from gateway.planning.traffic import read_traffic
from tests.requirements import requirement

pytestmark = requirement("plan:page")

ROOT = Path(__file__).resolve().parents[4]
PAGE = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```console\n\$ sixhop (plan .*)\n((?:.*\n)*?)```", PAGE)
LEFT_OUT = "…"
ROWS = {
    cells[0]: (cells[1], cells[2])
    for cells in (
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in PAGE.splitlines()
        if line.startswith("| ") and not line.startswith("| |")
    )
}
Told = Mapping[str, Any]


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work where a reader of the page does."""
    monkeypatch.chdir(ROOT)


def said(command: str, *more: str) -> str:
    """Return what a command prints."""
    outcome = CliRunner().invoke(app, [*shlex.split(command), *more])
    assert outcome.exit_code == 0, outcome.output
    return outcome.output


def of(told: Told, part: str, name: str) -> Told:
    """Return one tier, ejection or store."""
    keys = {"tiers": "name", "ejections": "tier"}
    found: list[Told] = told["stores"]["loads"] if part == "stores" else told[part]
    return next(each for each in found if each[keys.get(part, "use")] == name)


def pods(name: str) -> Callable[[Told], str]:
    """Return what tells the pods of a tier."""
    return lambda told: f"{of(told, 'tiers', name)['pods']}"


def gib(mib: float) -> str:
    """Return a size as the page has it."""
    return f"{mib / 1024:.1f} GiB"


FACTS: Mapping[str, Callable[[Told], str]] = {
    "pods, cores in use": lambda t: f"{t['totals']['pods']}, {t['totals']['cores']:.1f}",
    "gateway pods": pods("gateway"),
    "memory of hops, of sidecars": lambda t: (
        f"{gib(t['totals']['memory_mib'])}, {gib(t['totals']['sidecar_memory_mib'])}"
    ),
    "connections between sidecars": lambda t: (
        f"{sum(each['connections'] for each in t['connections']):,}"
    ),
    "permits in use in a gateway, of 64": lambda t: f"{t['pools'][0]['load']:.0f}",
    "Redis for quota, for runs": lambda t: (
        f"{of(t, 'stores', 'quota')['redis_ratio']:.0%}, "
        f"{of(t, 'stores', 'runs')['redis_ratio']:.0%} of a core"
    ),
    "board, read": lambda t: f"{of(t, 'stores', 'board')['kib_per_s']:,.0f} KiB/s",
    "until all know a sick model pod": lambda t: f"{of(t, 'ejections', 'model')['all_s']:.1f} s",
    "of the model calls lost until one knows": lambda t: (
        f"{of(t, 'ejections', 'model')['failing_ratio']:.0%}"
    ),
}
"""What the table of the page compares, and how it is found in what the command tells programs."""


@pytest.mark.parametrize(("command", "shown"), BLOCKS)
def test_every_line_of_the_page_is_printed_by_its_command(command: str, shown: str) -> None:
    printed = iter([line.rstrip() for line in said(command).splitlines()])

    missing = [
        line
        for line in shown.splitlines()
        if line.strip() != LEFT_OUT and line.rstrip() not in printed
    ]

    assert missing == []


def test_the_table_of_the_page_has_the_numbers_of_both_plans() -> None:
    one, hundred = (json.loads(said(command, "--json")) for command, _ in BLOCKS)

    assert {name: (told(one), told(hundred)) for name, told in FACTS.items()} == ROWS


def test_the_traffic_of_the_page_is_one(tmp_path: Path) -> None:
    example = re.search(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert example is not None
    path = tmp_path / "traffic.toml"
    path.write_text(example[1], encoding="utf-8")

    traffic = read_traffic(path, {})

    assert traffic.peak_qps == pytest.approx(48.6)
    assert traffic.model.cpu_ms == 3.0
    assert said(f"plan --traffic {path}")
