"""Tests what the verb `plan` shows, and what it refuses."""

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from gateway.cli import __main__ as command
from gateway.cli.__main__ import app
from gateway.planning.traffic import Traffic
from services.runtime.topology import DOMAIN, GATEWAY, LLM, MODEL, MODEL_BACKUP, ROUTING
from tests.requirements import requirement

TIERS = [
    *(GATEWAY, ROUTING, DOMAIN),
    *("tool/core", "tool/data", "tool/auxiliary", "tool/external"),
    *(MODEL, MODEL_BACKUP, LLM),
]
EVERY_TOOL = "[external]\ncalls = 0.2\n"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work where there is no configuration; return the folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(*arguments: str, code: int = 0) -> str:
    """Return what the verb says."""
    outcome = CliRunner().invoke(app, ["plan", *arguments])
    assert outcome.exit_code == code, outcome.output
    return outcome.output


def told(*arguments: str) -> dict[str, Any]:
    """Return what it says to programs."""
    document: dict[str, Any] = json.loads(said(*arguments, "--json"))
    return document


def tiers(*arguments: str) -> dict[str, dict[str, Any]]:
    """Return the tiers of a plan by name."""
    return {tier["name"]: tier for tier in told(*arguments)["tiers"]}


def rows(text: str, title: str) -> Sequence[Sequence[str]]:
    """Return the cells of the table under a title."""
    lines = text.split(f"{title}\n")[1].split("\n\n")[0].splitlines()
    return [re.split(r"\s{2,}", line.strip()) for line in lines[2:]]


@requirement("plan:pods")
def test_every_tier_has_the_pods_that_cpu_and_calls_in_flight_take(elsewhere: Path) -> None:
    (elsewhere / "traffic.toml").write_text(EVERY_TOOL, encoding="utf-8")

    fast = ("--qps", "2500", "--p50", "1", "--traffic", "traffic.toml")
    text, found = said(*fast), tiers(*fast)

    assert list(found) == TIERS
    assert [row[0] for row in rows(text, "80% of the calls where the first are refused:")] == TIERS
    gateway = found[GATEWAY]
    # 2500 runs of 2 ms and 21.9 events of 0.45 ms, on cores of which 0.6 may be in use; one more.
    assert gateway["cores"] == pytest.approx(2500 * (2.0 + 21.9 * 0.45) / 1000)
    assert gateway["pods"] == 50 + 1
    assert gateway["because"] == "cpu"
    # 102 of 256 calls: 0.8 of what SHEDDABLE calls may use, which is half of the limit.
    assert gateway["inflight_target"] == 102
    assert found[MODEL_BACKUP]["because"] == "fewest"
    assert found[LLM]["pods"] == 0


@requirement("plan:pods")
def test_long_answers_take_pods_for_calls_in_flight() -> None:
    found = tiers("--qps", "100", "--p50", "10", "--p99", "12")

    # 100 runs of ten seconds: a thousand and some, of which one pod takes 102.
    assert found[GATEWAY]["because"] == "in flight"
    assert found[GATEWAY]["in_flight"] == pytest.approx(1020, rel=0.02)
    assert found[GATEWAY]["pods"] == 11 + 1


@requirement("plan:pods")
def test_the_hpa_reaches_from_the_average_to_the_peak_without_half_of_the_pods() -> None:
    at_peak, average = tiers("--qps", "400", "--peak", "5"), tiers("--qps", "400")

    for name in (GATEWAY, ROUTING, DOMAIN, MODEL):
        tier = at_peak[name]
        assert tier["min_pods"] == average[name]["pods"]
        assert tier["max_pods"] >= 2 * (tier["pods"] - 1)
        assert tier["busy_ratio"] * tier["pods"] / (tier["pods"] - 1) <= 0.6


@requirement("plan:permits")
def test_permits_that_are_too_few_are_told_with_those_that_are_enough(elsewhere: Path) -> None:
    document = told("--qps", "2500")
    (note,) = (text for text in document["notes"] if text.startswith("bulkhead.core"))
    wanted = document["permits"]["core"]
    assert note.endswith(f"set it to {wanted}")

    (elsewhere / "sixhop.toml").write_text(
        f"[bulkhead.core]\npermits = {wanted}\nmax_queued = 256\n", encoding="utf-8"
    )
    again = told("--qps", "2500")

    assert again["source"] == "sixhop.toml"
    assert not [text for text in again["notes"] if text.startswith("bulkhead.core")]
    # A sidecar must let pass what a bulkhead lets pass, and has a quarter more.
    most = {c["max_requests"] for c in again["connections"] if c["callee"] == ROUTING}
    assert most == {math.ceil(1.25 * wanted)}


@requirement("plan:permits")
def test_a_pool_that_is_full_has_waits_without_end() -> None:
    document = told("--qps", "2500")
    pool = next(p for p in document["pools"] if (p["caller"], p["group"]) == (GATEWAY, "core"))
    shown = rows(said("--qps", "2500"), "permits of one pod:")[0]

    assert (pool["wait_ratio"], pool["mean_wait_s"]) == (1.0, None)
    assert (shown[0], shown[6], shown[7]) == (GATEWAY, "100%", "no end")


@requirement("plan:ejection")
def test_few_pods_lose_few_and_a_breaker_that_may_open_is_told() -> None:
    document = told("--qps", "0.2")
    domain = next(each for each in document["ejections"] if each["tier"] == DOMAIN)

    assert (domain["callers"], domain["failing_calls"], domain["max_ejected"]) == (3, 9, 1)
    assert domain["left_ratio"] == pytest.approx(2 / 3)
    assert domain["breaker_opens"]
    assert any(text.startswith("domain: a caller makes so few") for text in document["notes"])


@requirement("plan:redis")
def test_stores_are_told_whether_or_not_they_are_configured(elsewhere: Path) -> None:
    text = said("--qps", "50")
    (elsewhere / "sixhop.toml").write_text(
        '[gateway]\nquota_redis_url = "redis://r:6379/0"\nruns.redis_url = "redis://r:6379/1"\n'
        "[tenants.default]\nrequests_per_minute = 600\n",
        encoding="utf-8",
    )
    configured = {
        load["use"]: load["configured"] for load in told("--qps", "50")["stores"]["loads"]
    }

    assert [row[1] for row in rows(text, "stores:")[:3]] == ["runs", "quota", "board"]
    assert re.search(r"Postgres +0 +no hop uses it", text)
    assert configured == {"runs": True, "quota": True, "board": False}


@requirement("plan:redis")
def test_more_runs_than_redis_may_keep_are_told(elsewhere: Path) -> None:
    def kept(most_mib: int) -> list[str]:
        (elsewhere / "traffic.toml").write_text(f"[redis]\nmaxmemory_mib = {most_mib}\n")
        notes = told("--qps", "16.2", "--traffic", "traffic.toml")["notes"]
        return [text for text in notes if "maxmemory" in text]

    assert kept(1200) == []
    (note,) = kept(384)
    assert note.startswith("what Redis keeps, 1,056 MiB, is more than its maxmemory of 384 MiB")


@requirement("plan:refuses")
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), "say how many runs come per second: --qps 50"),
        (("--qps", "-5"), "qps = -5: write a number above 0"),
        (("--qps", "5", "--peak", "0.5"), "peak_factor = 0.5: write a number from 1 to 100"),
        (("--qps", "5", "--p50", "8", "--p99", "2"), "[llm] p99_s = 2: it is below p50_s = 8"),
        (("--qps", "5", "--utilisation", "1"), "utilisation = 1: write a number above 0 and below"),
        (("--qps", "5", "--traffic", "none.toml"), "none.toml does not exist"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_to_write(
    arguments: tuple[str, ...], text: str
) -> None:
    assert text in said(*arguments, code=2)


@requirement("plan:refuses")
@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("qpss = 5\n", "qpss is not a setting; did you mean qps?"),
        ("[routing]\ncpu = 5\n", "[routing] cpu is not a setting; did you mean cpu_ms?"),
        ("[data]\ncalls = -1\n", "[data] calls = -1: write a number from 0 to 1000"),
        ("llm = 5\n", "llm = 5: write a table"),
        ('peak_factor = "10"\n', "peak_factor = 10: write a number from 1 to 100, without quotes"),
        ("[routing]\ncpu_ms = true\n", "cpu_ms = true: write a number from 0 to 60000"),
        ("[sidecar]\nworkers = true\n", "workers = true: write a whole number from 1 to 128"),
        (
            "[data]\nwaits = {p50_s = '1', p99_s = 2}\n",
            "[data] waits has 1: write a number, without quotes",
        ),
        ("[ejection]\nfailing_ratio = 0.01\n", "write 0.10 or more"),
        ("qps = \n", "traffic.toml cannot be read"),
    ],
)
def test_a_file_that_is_wrong_is_refused_with_what_to_write(
    elsewhere: Path, content: str, text: str
) -> None:
    (elsewhere / "traffic.toml").write_text(content, encoding="utf-8")

    assert text in said("--qps", "5", "--traffic", "traffic.toml", code=2)


@requirement("plan:refuses")
def test_what_the_deadlines_cannot_hold_is_refused_with_what_would_do(elsewhere: Path) -> None:
    by_tool = said("--qps", "5", "--p50", "20", code=1)
    (elsewhere / "traffic.toml").write_text("[auxiliary]\nmodel_calls = 0\n", encoding="utf-8")
    direct = said("--qps", "5", "--p50", "28", "--traffic", "traffic.toml", code=1)
    document = json.loads(said("--qps", "5", "--p50", "20", "--json", code=1))

    assert "the ladder cannot hold it: the provider's median of 20 s" in by_tool
    assert "calls.tool.step_timeout_s" in by_tool
    assert "gateway → routing → domain → tool → model → llm" in by_tool
    longer = re.search(r"raise deadline.default_deadline_s to ([0-9.]+) or more", direct)
    assert longer is not None
    assert document["error"]["reason"] == "LADDER_TOO_SHORT"
    # What it asks for is enough.
    (elsewhere / "sixhop.toml").write_text(
        f"[deadline]\ndefault_deadline_s = {float(longer[1]) + 10}\n", encoding="utf-8"
    )
    said("--qps", "5", "--p50", "28", "--p99", "29", "--traffic", "traffic.toml")


@requirement("plan:refuses")
def test_a_run_whose_calls_take_longer_than_its_deadline_is_refused(elsewhere: Path) -> None:
    content = "[data]\ncalls = 10\nwaits = {p50_s = 4, p99_s = 5}\n"
    (elsewhere / "traffic.toml").write_text(content, encoding="utf-8")
    slow = "[external]\ncalls = 1\nwaits = {p50_s = 18, p99_s = 20}\n"
    (elsewhere / "slow.toml").write_text(slow, encoding="utf-8")

    assert "a run takes 42" in said("--qps", "5", "--traffic", "traffic.toml", code=1)
    assert "external tools: their median of 18 s is more than the 16.5 s" in said(
        "--qps", "5", "--traffic", "slow.toml", code=1
    )


@requirement("plan:refuses")
def test_answers_that_outlive_their_deadline_are_told() -> None:
    document = told("--qps", "5", "--p50", "6", "--p99", "20")

    ratio = document["cut_ratios"]["gateway → routing → domain → tool → model → llm"]
    assert ratio == pytest.approx(0.046, abs=0.001)
    assert any(
        text.startswith(f"{ratio:.1%} of the provider's answers") for text in document["notes"]
    )


@requirement("plan:refuses")
def test_of_two_percentiles_one_may_be_left_out() -> None:
    only_median = Traffic.model_validate(told("--qps", "5", "--p50", "3")["traffic"]).llm
    only_tail = Traffic.model_validate(told("--qps", "5", "--p99", "3")["traffic"]).llm

    assert (only_median.p50_s, only_median.p99_s) == (3.0, 9.0)
    assert (only_tail.p50_s, only_tail.p99_s) == (1.0, 3.0)


@requirement("plan:pods")
def test_a_narrow_terminal_cuts_no_number(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def narrow(stream: TextIO) -> Console:
        return Console(file=stream, width=60, markup=False, highlight=False)

    monkeypatch.setattr("gateway.cli.plan.open_console", narrow)

    with pytest.raises(typer.Exit):
        command.plan(qps=2500.0)

    assert "…" not in capsys.readouterr().out
