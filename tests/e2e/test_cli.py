"""Tests the verbs `ask` and `health` against a suite that `up` runs."""

import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from services.runtime.topology import DOMAIN, GATEWAY, HOPS, ROUTING, TOOL
from tests.e2e.cli import CONTROL, CommandLine, Up, running_up
from tests.e2e.suite import wait_until
from tests.ports import free_port
from tests.requirements import requirement

COUNT = "SELECT count(*) AS n, sum(amount) AS total FROM sales"
SALES = b"day,shop,amount\n2026-01-01,North,10.5\n2026-01-02,South,20\n2026-01-03,North,11.5\n"
HEALTHY_WITHIN_S = 10.0


@pytest.fixture(scope="module")
def command_line(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """Return a command line with ports and a folder of its own."""
    return CommandLine(tmp_path_factory.mktemp("cli"))


@pytest.fixture(scope="module")
def up(command_line: CommandLine) -> Iterator[Up]:
    """Return the suite of this module."""
    with running_up(command_line) as running:
        yield running


@pytest.fixture
def sales(tmp_path: Path) -> str:
    """Return a small data file."""
    file = tmp_path / "sales.csv"
    file.write_bytes(SALES)
    return str(file)


@requirement("cli:ask-shows-the-way")
def test_an_answer_comes_on_standard_output_with_the_waterfall_of_its_hops(
    command_line: CommandLine, up: Up, sales: str
) -> None:
    ran = command_line.run("ask", COUNT, "--agent", "probe_sql", "--data", sales)

    assert ran.code == 0, ran
    assert ran.out.startswith("[[3.0, 42.0]]\n")
    assert "Written by a template, no model" in ran.out
    heading, gateway, routing, domain, tool = (
        line
        for line in ran.out.splitlines()
        if any(word in line for word in ("itself  ", *HOPS))
        if "Written" not in line and "works" not in line
    )
    assert heading.split()[:5] == ["hop", "given", "used", "itself", "left"]
    assert [line.split()[0] for line in (gateway, routing, domain, tool)] == list(HOPS[:4])
    assert not CONTROL.search(ran.out)


@requirement("cli:ask-shows-the-way")
def test_progress_is_told_apart_from_the_answer_and_as_plain_lines(
    command_line: CommandLine, up: Up, sales: str
) -> None:
    ran = command_line.run("ask", COUNT, "--agent", "probe_sql", "--data", sales)

    lines = ran.err.splitlines()
    assert lines[0].startswith("run ")
    assert lines[1] == "agent probe_sql, as asked"
    assert lines[2] == "step 1 sql, Query ..."
    assert lines[3].startswith("step 1 sql, Query: ok after ")
    assert not CONTROL.search(ran.err)


@requirement("cli:one-json-document")
def test_the_document_of_an_answer_tells_what_each_hop_was_given_and_left(
    command_line: CommandLine, up: Up, sales: str
) -> None:
    ran = command_line.run(
        "ask", COUNT, "--agent", "probe_sql", "--data", sales, "--deadline", "20", "--json"
    )

    document = ran.document
    assert ran.code == 0
    assert ran.err == ""
    assert (document["ok"], document["text"]) == (True, "[[3.0, 42.0]]")
    assert [hop["hop"] for hop in document["hops"]] == [GATEWAY, ROUTING, DOMAIN, TOOL]
    given = [hop["given_s"] for hop in document["hops"]]
    assert given == sorted(given, reverse=True)
    assert given[0] == 20
    assert given[3] <= 0.6 * given[2] * 1.04
    assert all(0 < hop["used_s"] <= hop["given_s"] for hop in document["hops"])


@requirement("cli:ask-shows-the-way")
def test_files_of_an_answer_are_saved_where_they_were_asked_for(
    command_line: CommandLine, up: Up, tmp_path: Path, sales: str
) -> None:
    out = tmp_path / "out"

    ran = command_line.run(
        "ask", "Which shop has the highest amount?", "--agent", "reports",
        "--data", sales, "--out", str(out), "--json",
    )  # fmt: skip

    saved = {Path(file["path"]).suffix: Path(file["path"]) for file in ran.document["artefacts"]}
    assert ran.code == 0, ran
    assert "22" in ran.document["text"]
    assert saved[".pdf"].parent == out
    assert saved[".pdf"].read_bytes().startswith(b"%PDF")


@dataclass(frozen=True, slots=True)
class Wrong:
    """Is a command that cannot succeed, and what it ends with."""

    arguments: tuple[str, ...]
    code: int
    reason: str
    says: str


WRONG = {
    "missing-file": Wrong(("x", "--data", "none.csv"), 2, "BAD_FILE", "there is no such file"),
    "folder": Wrong(("x", "--data", "."), 2, "BAD_FILE", "it is a folder"),
    "unknown-agent": Wrong(("x", "--agent", "poet"), 2, "NOT_FOUND", "known: "),
    "empty-question": Wrong(("",), 2, "INVALID_ARGUMENT", "ask something"),
    "no-deadline": Wrong(("x", "--deadline", "0"), 2, "BAD_USAGE", "--deadline"),
    "no-number": Wrong(("x", "--deadline", "nan"), 2, "BAD_USAGE", "--deadline"),
    "no-address": Wrong(("x", "--gateway", "nowhere"), 2, "BAD_USAGE", "HOST:PORT"),
    "drop-table": Wrong(
        ("DROP TABLE orders", "--agent", "probe_sql"), 2, "INVALID_ARGUMENT", "query"
    ),
    "unknown-dataset": Wrong(
        ("SELECT 1", "--agent", "probe_sql", "--data", "name:nothing"), 2, "NOT_FOUND", "nothing"
    ),
    "too-little-time": Wrong(("x", "--deadline", "0.03"), 1, "BUDGET_TOO_SMALL", "deadline"),
}


@requirement("cli:exit-codes", "cli:one-json-document")
@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_succeed_ends_with_one_document_and_its_exit_code(
    command_line: CommandLine, up: Up, name: str
) -> None:
    wrong = WRONG[name]

    ran = command_line.run("ask", *wrong.arguments, "--json")

    assert ran.document["ok"] is False
    assert ran.document["error"]["reason"] == wrong.reason
    assert wrong.says in ran.document["error"]["message"]
    assert ran.code == wrong.code
    assert "Traceback" not in ran.err


@requirement("cli:exit-codes")
def test_without_a_suite_the_way_to_start_one_is_told(command_line: CommandLine) -> None:
    port = free_port()

    ran = command_line.run("ask", "x", "--gateway", f"127.0.0.1:{port}")

    assert ran.code == 2
    assert f"no suite answers at 127.0.0.1:{port}" in ran.err
    assert "sixhop up" in ran.err
    assert ran.out == ""


@requirement("cli:exit-codes", "input:clear-errors")
def test_ten_megabytes_from_standard_input_are_refused_by_the_gateway(
    command_line: CommandLine, up: Up
) -> None:
    ran = command_line.run("ask", "-", stdin=b"a" * 10_000_000)

    assert ran.code == 2
    assert "has 10,000,000 characters" in ran.err
    assert "Traceback" not in ran.err


@requirement("cli:exit-codes", "failure:nothing-left")
def test_a_run_that_outlives_its_deadline_names_the_hop_and_what_was_left(
    command_line: CommandLine, up: Up
) -> None:
    ran = command_line.run("ask", "x", "--agent", "probe_wait", "--deadline", "1.5", "--json")

    error = ran.document["error"]
    assert ran.code == 1
    assert ran.document["elapsed_s"] < 1.5
    assert error["hop_to_blame"] == DOMAIN
    assert error["remaining_ms"] > 0
    assert error["advice"]
    assert ran.document["partial_text"] == "waiting"
    assert "text" not in ran.document


@requirement("cli:cancel", "cli:exit-codes")
def test_ctrl_c_ends_the_run_in_every_hop(command_line: CommandLine, up: Up) -> None:
    asking = command_line.child("asking", "ask", "x", "--agent", "probe_wait", "--deadline", "60")
    asking.start()
    try:
        wait_until(lambda: inflight(command_line, DOMAIN) == 1, 20, "the run is under way")

        asking.send(signal.SIGINT)
        code = asking.wait(10)

        wait_until(
            lambda: all(inflight(command_line, hop) == 0 for hop in HOPS), 5, "nothing is left"
        )
    finally:
        asking.end()
    assert code == 130
    assert "cancelled" in asking.log.read_text()
    assert "Traceback" not in asking.log.read_text()


@requirement("cli:health")
def test_health_is_well_when_every_hop_serves(command_line: CommandLine, up: Up) -> None:
    wait_healthy(command_line)

    ran = command_line.run("health")
    document = command_line.run("health", "--json").document

    assert ran.code == 0
    assert [line.split()[1] for line in ran.out.splitlines()[2:7]] == ["serving"] * 5
    assert not CONTROL.search(ran.out)
    assert [hop["hop"] for hop in document["hops"]] == list(HOPS)
    assert document["llm"]["state"] == "unreachable"
    assert all(hop["resident_byte_count"] > 0 for hop in document["hops"])


@requirement("cli:health")
def test_a_frozen_hop_is_told_within_its_second(command_line: CommandLine, up: Up) -> None:
    wait_healthy(command_line)
    tool = up.processes()[TOOL]
    tool.suspend()
    try:
        ran = command_line.run("health", "--json")
    finally:
        tool.resume()

    states = {hop["hop"]: hop["state"] for hop in ran.document["hops"]}
    assert ran.code == 1
    assert states == {hop: "silent" if hop == TOOL else "serving" for hop in HOPS}


@requirement("cli:health", "cli:exit-codes")
def test_health_asks_the_hops_and_says_what_is_wrong_while_the_file_is_broken(
    command_line: CommandLine, up: Up, tmp_path: Path
) -> None:
    wait_healthy(command_line)
    file = tmp_path / "broken.toml"
    file.write_text("[calls.tool\n", encoding="utf-8")

    ran = command_line.run("health", "--json", "--config", str(file))
    shown = command_line.run("health", "--config", str(file))

    assert (ran.code, shown.code) == (2, 2)
    assert {hop["state"] for hop in ran.document["hops"]} == {"serving"}
    assert "broken.toml cannot be read" in ran.document["problem"]
    assert shown.out.startswith("problem: ")
    assert shown.out.count(" serving ") == len(HOPS)


@requirement("cli:up-restarts", "failure:restarted-hop-is-found")
@pytest.mark.parametrize("hop", [TOOL, ROUTING])
def test_a_killed_hop_is_started_again_and_answers_again(
    command_line: CommandLine, up: Up, sales: str, hop: str
) -> None:
    wait_healthy(command_line)
    before = len(up.told("serving"))
    victim = up.processes()[hop]

    victim.kill()
    exited = up.wait_told("exited", count=len(up.told("exited")) + 1)
    served = up.wait_told("serving", count=before + 1)

    assert (exited["name"], exited["returncode"]) == (hop, -signal.SIGKILL)
    assert exited["pause_s"] <= 0.25 * 2**4
    assert (served["name"], served["again"]) == (hop, True)
    assert served["pid"] != victim.pid
    wait_until(
        lambda: command_line.run("ask", COUNT, "--agent", "probe_sql", "--data", sales).code == 0,
        HEALTHY_WITHIN_S,
        "questions are answered again",
    )


def inflight(command_line: CommandLine, hop: str) -> int:
    """Return how many calls a hop serves now, its own housekeeping left out."""
    hops = command_line.run("health", "--json").document["hops"]
    return sum(each["inflight_count"] for each in hops if each["hop"] == hop)


def wait_healthy(command_line: CommandLine) -> None:
    """Wait until every hop serves: a test before may have killed one."""
    wait_until(
        lambda: command_line.run("health", "--json").code == 0, HEALTHY_WITHIN_S, "all is well"
    )
