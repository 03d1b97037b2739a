"""Tests that a running suite follows its file on SIGHUP, and drops no call for it."""

import json
import os
import signal
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import psutil
import pytest_asyncio

from services.runtime.topology import DOMAIN, GATEWAY, HOPS
from tests.e2e.cli import STOP_TIMEOUT_S, CommandLine, Up, running_up
from tests.e2e.client import Client, Running, open_client
from tests.e2e.suite import WAIT_S, eventually, running_suite, wait_until
from tests.e2e.test_engine import arrivals, until
from tests.processes import Child
from tests.requirements import requirement

AT_FIRST = """
[engine]
enabled = true
[breaker]
slow_count = 12
slow_of = 12
min_calls = 12
[retry]
max_attempts = 1
"""
HASTY = """
[engine]
enabled = true
[breaker]
slow_count = 5
slow_of = 12
min_calls = 12
[retry]
max_attempts = 1
[calls.tool]
step_timeout_s = 1
[calls.model]
step_timeout_s = 1
[calls.llm]
step_timeout_s = 0.9
"""
BAD = {
    AT_FIRST + "[calls.tool\n": "cannot be read",
    AT_FIRST + "[calls.tool]\nstep_timeout_s = 'short'\n": "[calls.tool] step_timeout_s",
    HASTY + "[tool]\nport = 1\nhost = '127.0.0.2'\n": "tool.host: cannot change",
}
ON_TERMINAL = """
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(os.open(sys.argv[1], os.O_RDWR), termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""
"""Makes a terminal the one that a process hangs on, and becomes another program."""
TOLD = ("config_reloaded", "reload_refused")


@dataclass(slots=True)
class Reloading:
    """Is a suite with a file of its own."""

    client: Client
    file: Path

    async def reload(self, text: str) -> dict[str, dict[str, Any]]:
        """Change the file, have every hop read it, and return what each has said about it."""
        before = {hop: len(self._said(hop)) for hop in HOPS}
        self.file.write_text(text)
        for hop in HOPS:
            self.client.suite.child(hop).send(signal.SIGHUP)
        return {hop: await self._saying(hop, before[hop]) for hop in HOPS}

    def run(self, tool: str, **arguments: Any) -> Running:
        """Start a run that executes one tool."""
        return self.client.run(f"{tool} {json.dumps(arguments)}", agent="probe_tool")

    async def _saying(self, hop: str, number: int) -> dict[str, Any]:
        return await eventually(
            lambda: self._said(hop)[number : number + 1], WAIT_S, f"{hop} says what it did"
        )

    def _said(self, hop: str) -> Sequence[dict[str, Any]]:
        events = self.client.suite.child(hop).events()
        return [event for event in events if event["event"] in TOLD]


@pytest_asyncio.fixture
async def reloading(tmp_path: Path) -> AsyncIterator[Reloading]:
    """Return a suite whose settings are in a file."""
    file = tmp_path / "sixhop.toml"
    file.write_text(AT_FIRST)
    with running_suite(tmp_path, SIXHOP_CONFIG=str(file)) as started:
        async with open_client(started) as client:
            await client.warm()
            await client.tools_known()
            yield Reloading(client, file)


def folders(tmp_path: Path, *names: str) -> list[Path]:
    """Return new folders."""
    made = [tmp_path / name for name in names]
    for each in made:
        each.mkdir()
    return made


@requirement("reload:drops-no-call")
async def test_calls_in_flight_are_answered_and_new_ones_have_the_new_limits(
    reloading: Reloading, tmp_path: Path
) -> None:
    first, second = folders(tmp_path, "first", "second")
    hanging = [reloading.run("hatch", folder=str(first)) for _ in range(3)]
    await until(lambda: arrivals(first / "arrivals") == 3, "three calls hang")

    said = await reloading.reload(HASTY)
    still = arrivals(first / "arrivals")
    (first / "open").touch()
    answered = [await running.end() for running in hanging]
    cutting = [reloading.run("hatch", folder=str(second)) for _ in range(5)]
    cut = [await running.end() for running in cutting]
    refused = await reloading.run("hatch", folder=str(second)).end()

    assert {line["event"] for line in said.values()} == {"config_reloaded"}, said
    assert said[DOMAIN]["changed"] == {
        "breaker.slow_count": "12 → 5",
        "calls.llm.step_timeout_s": "5.5 → 0.9",
        "calls.model.step_timeout_s": "10.0 → 1.0",
        "calls.tool.step_timeout_s": "20.0 → 1.0",
    }
    assert still == 3
    assert {run.code for run in answered} == {grpc.StatusCode.OK}, answered
    # The tool hop, cut by its caller's limit, says so itself when it is quick enough.
    late = {"SELF_TIMEOUT", "NO_ANSWER"}
    assert {run.details.get("originReason") for run in cut} <= late, cut
    assert refused.details.get("originReason") == "CIRCUIT_OPEN", refused


@requirement("reload:bad-file-changes-nothing")
async def test_a_bad_file_is_refused_aloud_and_the_old_limits_hold(
    reloading: Reloading, tmp_path: Path
) -> None:
    (folder,) = folders(tmp_path, "hatch")
    said = [await reloading.reload(text) for text in BAD]
    hanging = [reloading.run("hatch", folder=str(folder)) for _ in range(3)]
    await until(lambda: arrivals(folder / "arrivals") == 3, "three calls hang")
    (folder / "open").touch()
    answered = [await running.end() for running in hanging]
    mended = await reloading.reload(HASTY)

    for lines, problem in zip(said, BAD.values(), strict=True):
        assert {line["event"] for line in lines.values()} == {"reload_refused"}, lines
        assert all(problem in line["problem"] for line in lines.values()), lines
    assert {run.code for run in answered} == {grpc.StatusCode.OK}, answered
    assert {line["event"] for line in mended.values()} == {"config_reloaded"}, mended
    assert all(reloading.client.suite.child(hop).alive for hop in HOPS)


def have_reloaded(logs: Path, hops: Sequence[str]) -> None:
    """Wait until hops have read their file again."""
    for hop in hops:
        log = logs / f"{hop}.log"
        wait_until(
            lambda log=log: '"config_reloaded"' in log.read_text(),  # type: ignore[misc]
            WAIT_S,
            f"{hop} has read its file again",
        )


@requirement("reload:up-passes-it-on")
def test_up_passes_the_signal_on_to_its_hops(tmp_path: Path) -> None:
    file = tmp_path / "sixhop.toml"
    file.write_text("[limit]\nmax_inflight = 100\n")
    with running_up(CommandLine(tmp_path, SIXHOP_CONFIG=str(file))) as up:
        processes = up.processes()
        file.write_text("[limit]\nmax_inflight = 50\n")

        up.child.send(signal.SIGHUP)
        up.wait_told("reloading")
        up.wait_told("reloaded", count=len(HOPS))

        changed = {"limit.max_inflight": "100 → 50"}
        assert {each["name"]: each["changed"] for each in up.told("reloaded")} == dict.fromkeys(
            HOPS, changed
        )
        assert up.child.alive
        assert up.processes() == processes
        assert all(each.status() != psutil.STATUS_ZOMBIE for each in processes.values())


@requirement("reload:up-passes-it-on")
def test_up_says_of_every_hop_whether_it_took_the_file_refused_it_or_is_silent(
    tmp_path: Path,
) -> None:
    file = tmp_path / "sixhop.toml"
    file.write_text("")
    with running_up(CommandLine(tmp_path, SIXHOP_CONFIG=str(file))) as up:
        file.write_text("[tool]\nhost = '127.0.0.2'\n")
        up.processes()[DOMAIN].suspend()
        up.child.send(signal.SIGHUP)
        up.wait_told("reloaded", count=len(HOPS))
        told = {each["name"]: each for each in up.told("reloaded")}
        up.processes()[DOMAIN].resume()

    assert {hop: told[hop]["outcome"] for hop in HOPS} == {
        hop: "no answer" if hop == DOMAIN else "refused" for hop in HOPS
    }
    assert told[DOMAIN]["problem"] == ""
    assert "tool.host: cannot change while the hop runs" in told[GATEWAY]["problem"]


@requirement("reload:up-passes-it-on")
def test_hops_that_are_being_started_are_told_when_they_serve(tmp_path: Path) -> None:
    child = CommandLine(tmp_path).child("up", "up", "--no-llm", "--json")
    child.start()
    up = Up(child)
    try:
        up.wait_told("serving")
        child.send(signal.SIGHUP)
        up.wait_told("ready")
        # The gateway, which is started last, has read the file as it is by then.
        inner = [hop for hop in HOPS if hop != GATEWAY]
        have_reloaded(Path(up.told("planned")[0]["logs"]), inner)

        assert up.told("exited") == []
    finally:
        child.end()


@requirement("reload:up-passes-it-on", "cli:up-stops-clean")
def test_up_stops_with_its_terminal(tmp_path: Path) -> None:
    command_line = CommandLine(tmp_path)
    ours, theirs = os.openpty()
    arguments = ["-c", ON_TERMINAL, os.ttyname(theirs), "-m", "gateway.cli", "up", "--no-llm"]
    child = Child("up", [*arguments, "--json"], command_line.environment, tmp_path)
    child.start()
    os.close(theirs)
    up = Up(child)
    try:
        up.wait_told("ready")
        processes = list(up.processes().values())
        os.close(ours)

        code = child.wait(STOP_TIMEOUT_S)
    finally:
        child.end()

    assert code == 0
    assert [each["name"] for each in up.told("stopped")] == list(HOPS)
    assert not any(process.is_running() for process in processes)
