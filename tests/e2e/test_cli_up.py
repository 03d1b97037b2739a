"""Tests how `up` begins and ends, and what `check` finds."""

import signal
import socket
import tomllib
from pathlib import Path

import psutil
import pytest

from services.runtime.topology import HOPS, TOOL
from tests.e2e.cli import CONTROL, STOP_TIMEOUT_S, CommandLine, running_up
from tests.ports import free_port
from tests.processes import ROOT
from tests.requirements import requirement

GONE_WITHIN_S = 5.0
MANIFESTS = ROOT / "tests/unit/gateway/manifests/suite.yaml"


@pytest.fixture
def command_line(tmp_path: Path) -> CommandLine:
    """Return a command line with ports and a folder of its own."""
    return CommandLine(tmp_path)


@requirement("cli:up-stops-clean")
def test_ctrl_c_stops_a_suite_in_reverse_and_kills_only_what_does_not_end(tmp_path: Path) -> None:
    command_line = CommandLine(tmp_path, SIXHOP_TOOL__DRAIN_TIMEOUT_S="0.1")
    with running_up(command_line) as up:
        processes = list(up.processes().values())
        planned = up.told("planned")[0]
        up.processes()[TOOL].suspend()

        up.child.send(signal.SIGINT)
        code = up.child.wait(STOP_TIMEOUT_S)

    assert code == 0
    assert [each["name"] for each in up.told("stopped")] == list(HOPS)
    assert {each["name"]: each["returncode"] for each in up.told("stopped")} == {
        hop: -signal.SIGKILL if hop == TOOL else 0 for hop in HOPS
    }
    assert len(processes) == len(HOPS)
    assert not any(process.is_running() for process in processes)
    assert all(Path(planned["logs"], f"{hop}.log").stat().st_size > 0 for hop in HOPS)


@requirement("cli:up-stops-clean")
def test_a_suite_whose_up_was_killed_dies_with_it_even_frozen(command_line: CommandLine) -> None:
    with running_up(command_line) as up:
        processes = list(up.processes().values())
        up.processes()[TOOL].suspend()

        up.child.send(signal.SIGKILL)
        up.child.wait(STOP_TIMEOUT_S)

        _, left = psutil.wait_procs(processes, timeout=GONE_WITHIN_S)
    assert not left


@requirement("cli:up-refuses")
def test_a_taken_port_is_refused_with_its_hop_and_setting_before_anything_starts(
    command_line: CommandLine,
) -> None:
    with socket.create_server(("127.0.0.1", command_line.ports["tool"])):
        ran = command_line.run("up", "--no-llm")

    assert ran.code == 2
    assert f"tool cannot listen on 127.0.0.1:{command_line.ports['tool']}" in ran.err
    assert "SIXHOP_TOOL__PORT" in ran.err
    assert "starting" not in ran.out
    assert not hops_running(command_line)
    assert not CONTROL.search(ran.out + ran.err)


@requirement("cli:up-refuses")
def test_two_hops_on_one_port_are_refused(command_line: CommandLine) -> None:
    ran = command_line.run("up", "--no-llm", SIXHOP_TOOL__PORT=str(command_line.ports["model"]))

    assert ran.code == 2
    assert "are both to listen on" in ran.err


@requirement("cli:up-refuses")
def test_replicas_without_the_one_that_is_started_are_refused_before_anything_starts(
    command_line: CommandLine,
) -> None:
    ran = command_line.run("up", "--no-llm", SIXHOP_DOMAIN__REPLICAS="127.0.0.1:9,10.0.0.1:9")

    own = f"127.0.0.1:{command_line.ports['domain']}"
    assert ran.code == 2
    assert "[domain] replicas = 127.0.0.1:9, 10.0.0.1:9 (SIXHOP_DOMAIN__REPLICAS)" in ran.err
    assert f"add {own} to the list" in ran.err
    assert "starting" not in ran.out
    assert not hops_running(command_line)


@requirement("cli:up-refuses")
def test_a_setting_that_only_its_room_knows_is_refused_and_what_had_started_is_gone(
    command_line: CommandLine,
) -> None:
    ran = command_line.run("up", "--no-llm", "--json", SIXHOP_TOOL__MAX_ROWZ="3")

    last = ran.out.splitlines()[-1]
    assert ran.code == 2
    assert "tool refused to start: [tool] max_rowz (SIXHOP_TOOL__MAX_ROWZ) is not a" in last
    assert "did you mean max_rows?" in last
    assert not hops_running(command_line)


@requirement("cli:up-refuses")
def test_a_configuration_that_contradicts_itself_is_refused(
    command_line: CommandLine, tmp_path: Path
) -> None:
    file = tmp_path / "own.toml"
    file.write_text("[calls.tool]\nstep_timeout_s = 1\n", encoding="utf-8")

    ran = command_line.run("up", "--config", str(file))

    assert ran.code == 2
    assert "calls.model.step_timeout_s 10 s does not fit" in ran.err


@requirement("cli:check")
def test_a_good_configuration_is_shown_with_its_ladder(command_line: CommandLine) -> None:
    document = command_line.run("check", "--json").document

    unary = [rung["deadline_s"] for rung in document["ladders"]["unary"]]
    assert document["ok"] is True
    assert unary == pytest.approx([30 * 0.6**depth for depth in range(6)], abs=0.001)
    assert [rung["hop"] for rung in document["ladders"]["path"]] == [*HOPS, "llm"]


@requirement("cli:check", "cli:exit-codes")
def test_a_contradiction_is_no_success_and_is_told_by_whoever_finds_it(
    command_line: CommandLine,
) -> None:
    ran = command_line.run("check", "--json", SIXHOP_CALLS__TOOL__STEP_TIMEOUT_S="12")

    states = {rule["name"]: rule["state"] for rule in ran.document["rules"]}
    assert ran.code == 1
    assert states["backup-as-long"] == "warned"
    # Only the tool hop knows what its tools declare.
    assert [f["rule"] for f in ran.document["findings"] if f["severity"] == "violation"] == [
        "tool-timeout-fits"
    ]
    assert "tool/summarise" in ran.document["problems"][0]


@requirement("check:manifests")
def test_manifests_are_checked_against_the_configuration_that_they_hold(
    command_line: CommandLine,
) -> None:
    # The ports of this machine's suite are not those of the cluster.
    document = command_line.run("check", "--json", "--k8s", str(MANIFESTS)).document

    assert (document["ok"], document["problems"]) == (True, [])
    assert document["source"].endswith("ConfigMap sixhop, sixhop.toml")
    assert document["manifests"]["ignored"] == {}


@requirement("check:manifests", "cli:exit-codes")
def test_manifests_that_cut_runs_are_no_success(command_line: CommandLine) -> None:
    cut = MANIFESTS.read_text(encoding="utf-8").replace("seconds: 5}", "seconds: 50}")

    ran = command_line.run("check", "--json", "--k8s", "-", stdin=cut.encode())

    assert ran.code == 1
    assert "preStop 50 s + the longest run 115.0 s" in ran.document["problems"][0]


@requirement("check:manifests", "cli:exit-codes")
@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("BULKHEAD__CORE__PERMITS", "0", ("write a whole number of 1 or more",)),
        # Only the room knows its own section, and only the tree what contradicts it.
        ("ROUTING__MIN_MARGIN", "7", ("write a number from 0 to 1",)),
        ("CALLS__MODEL__STEP_TIMEOUT_S", "5", ("is never reached", "lower the first below")),
    ],
)
def test_a_pod_that_would_not_start_is_found_with_its_place_its_value_and_what_to_write(
    command_line: CommandLine, variable: str, value: str, words: tuple[str, ...]
) -> None:
    text = MANIFESTS.read_text(encoding="utf-8")
    added = f"env:\n            - {{name: SIXHOP_{variable}, value: '{value}'}}\n"
    wrong = text.replace("env:\n", added, 1)

    ran = command_line.run("check", "--json", "--k8s", "-", stdin=wrong.encode())

    assert ran.code == 1
    problems = ran.document["problems"]
    assert all(problem.startswith("standard input:") for problem in problems)
    assert all(" Deployment routing: " in problem for problem in problems)
    assert any(all(word in problem for word in words) for problem in problems)
    if "write" in words[0]:
        assert f"(SIXHOP_{variable})" in problems[0]


@requirement("check:manifests", "cli:exit-codes")
def test_an_empty_stream_of_manifests_is_no_success(command_line: CommandLine) -> None:
    ran = command_line.run("check", "--json", "--k8s", "-", stdin=b"")

    assert ran.code == 1
    assert "nothing has been checked" in ran.document["problems"][0]


@requirement("check:manifests", "cli:exit-codes")
def test_manifests_that_are_no_yaml_cannot_be_read(command_line: CommandLine) -> None:
    ran = command_line.run("check", "--k8s", "-", stdin=b"a: [\n")

    assert ran.code == 2
    assert "problem: standard input:2 cannot be read" in ran.out


@requirement("check:observed")
def test_timeouts_are_compared_with_what_running_hops_measure(tmp_path: Path) -> None:
    command_line = CommandLine(tmp_path, SIXHOP_ENGINE__ENABLED="true")
    with running_up(command_line):
        command_line.run("ask", "how many orders were there?")
        measured = command_line.run("check", "--observed", "--json")

    callees = {
        (each["hop"], each["key"]): each for each in measured.document["observed"]["callees"]
    }
    assert measured.code == 0
    assert callees["gateway", "routing"]["declared_s"] == 5.0
    assert callees["gateway", "routing"]["p99_s"] > 0
    # A few calls are no reason for anything.
    assert {each["verdict"] for each in callees.values()} == {"too few calls"}
    assert measured.document["observed"]["proposals"] == []


@requirement("check:observed", "cli:exit-codes")
def test_without_a_running_suite_nothing_can_be_compared(command_line: CommandLine) -> None:
    ran = command_line.run("check", "--observed")

    assert ran.code == 2
    assert "no hop answers" in ran.out


@requirement("config:every-setting-explained")
def test_the_whole_configuration_is_printed_as_a_file_that_holds(
    command_line: CommandLine, tmp_path: Path
) -> None:
    printed = command_line.run("check", "--print-config", SIXHOP_MODEL__API_KEY="hush")
    (tmp_path / "sixhop.toml").write_text(printed.out, encoding="utf-8")
    again = command_line.run("check", "--print-config")
    held = command_line.run("check")

    assert (held.code, "no problem found" in held.out) == (0, True), held.out
    assert {*HOPS, "llm", "deadline", "bulkhead"} <= set(tomllib.loads(printed.out))
    assert "hush" not in printed.out + printed.err
    # The file in the folder is read this time, and says the same; but for the key.
    hidden = "# api_key = set, and not shown"
    assert again.out == printed.out.replace(hidden, '# api_key = ""')


@requirement("config:every-setting-explained", "cli:exit-codes")
def test_a_configuration_that_a_room_cannot_read_is_not_printed(command_line: CommandLine) -> None:
    ran = command_line.run("check", "--print-config", SIXHOP_TOOL__MAX_ROWZ="3")

    assert (ran.code, ran.out) == (2, "")
    assert "did you mean max_rows?" in ran.err


@requirement("cli:check")
def test_every_rooms_problem_is_found_at_once(command_line: CommandLine) -> None:
    ran = command_line.run(
        "check",
        SIXHOP_TOOL__MAX_ROWZ="3",
        SIXHOP_ROUTING__MIN_MARGIN="7",
        SIXHOP_GATEWAY__MAX_SOURCE_COUNT="-1",
    )

    problems = [line for line in ran.out.splitlines() if line.startswith("problem: ")]
    assert ran.code == 2
    assert len(problems) == 3
    assert any("did you mean max_rows?" in problem for problem in problems)
    assert any("[routing] min_margin = 7 " in problem for problem in problems)
    assert any("[gateway] max_source_count = -1 " in problem for problem in problems)


@requirement("cli:demo")
def test_the_demo_answers_its_questions_with_files_even_without_a_model(
    command_line: CommandLine, tmp_path: Path
) -> None:
    port = free_port()

    ran = command_line.run(
        "demo",
        SIXHOP_MODEL__BASE_URL=f"http://127.0.0.1:{port}/v1",
        SIXHOP_MODEL__MODEL="none",
    )

    files = sorted(path.name for path in (tmp_path / "sixhop-out").rglob("*") if path.is_file())
    assert ran.code == 0, ran
    assert "3 of 3 questions were answered" in ran.out
    assert "Electronics grew most" in ran.out
    assert "West的退货率最高" in ran.out
    assert files == ["chart.png", "chart.png", "report.pdf", "report.pdf"]
    assert not CONTROL.search(ran.out)
    assert not hops_running(command_line)


def hops_running(command_line: CommandLine) -> list[int]:
    """Return the processes that were started with the ports of this command line."""
    port = str(command_line.ports["gateway"])
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("SIXHOP_GATEWAY__PORT") == port:
                found.append(process.pid)
        except psutil.Error:  # it has ended, or is another user's
            continue
    return found
