"""Runs the simulated provider as its users do: by its verb, as a process of its own."""

import asyncio
import http.client
import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.e2e.cli import CommandLine, Up
from tests.e2e.suite import WAIT_S, wait_until
from tests.integration.model.sim.expected import EXPECTED, rule
from tests.integration.model.sim.raw import FAST, chat, post
from tests.requirements import requirement

pytestmark = requirement("model-sim:verb")

ALONE = ("refuse-connections", "drip")
"""Faults that would disturb the others, or that last as long as a whole answer."""
QUIET_S = 1.0
"""After so long without a byte a stream is called silent."""
CHAT = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}


@contextmanager
def running(command_line: CommandLine, *arguments: str) -> Iterator[Up]:
    """Give a simulator that `sixhop model-sim` runs; leaving the block ends it."""
    child = command_line.child("model-sim", "model-sim", "--json", *arguments)
    child.start()
    sim = Up(child)
    try:
        sim.wait_told("serving")
        yield sim
    finally:
        child.end()


def ask(url: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """Ask the simulator, and return the status and the document."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=WAIT_S)
    try:
        connection.request(method, path, None if body is None else json.dumps(body))
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def test_it_serves_tells_where_and_grades_its_client_at_the_end(tmp_path: Path) -> None:
    rule = "401?times=1"
    with running(CommandLine(tmp_path), "--fault", rule, "--set", "ttft_median_s=0") as sim:
        told = sim.told("serving")[0]
        path = "/v1/chat/completions"
        first = ask(told["base_url"], "POST", path, CHAT)
        second = ask(told["base_url"], "POST", path, CHAT)
        log = ask(told["control_url"], "GET", "/sim/log")
        sim.child.send(signal.SIGINT)
        code = sim.child.wait(WAIT_S)
        stopped = sim.told("stopped")[0]

    assert (first[0], second[0], log[0], code) == (401, 200, 200, 0)
    assert [record["fault"] for record in log[1]["requests"]] == [rule, ""]
    assert stopped["grade"] == "harmful: resent_unchanged ×1"


def test_a_client_of_many_requests_is_graded_as_well(tmp_path: Path) -> None:
    asked = 1200
    with running(CommandLine(tmp_path), "--fault", "401") as sim:
        place = urlsplit(sim.told("serving")[0]["base_url"]).netloc
        connection = http.client.HTTPConnection(place, timeout=WAIT_S)
        for number in range(asked):
            words = [{"role": "user", "content": f"Question {number}"}]
            body = json.dumps({"model": "m", "messages": words})
            connection.request("POST", "/v1/chat/completions", body)
            connection.getresponse().read()
        connection.close()
        sim.child.send(signal.SIGINT)
        code = sim.child.wait(2 * WAIT_S)
        (stopped,) = sim.told("stopped")

    assert code == 0
    # More than a pipe and its reader hold, so that somebody has to read while it is written.
    assert len(json.dumps(stopped)) > 192 * 1024
    assert stopped["totals"]["requests"] == asked


def test_the_simulator_dies_with_its_verb(tmp_path: Path) -> None:
    with running(CommandLine(tmp_path)) as sim:
        url = sim.told("serving")[0]["base_url"]
        assert ask(url, "GET", "/v1/health")[0] == 200
        sim.child.send(signal.SIGKILL)
        sim.child.wait(WAIT_S)

        assert is_gone(url)


def is_gone(url: str) -> bool:
    """Return whether nobody answers any more, within the time that a kernel takes for it."""
    for _ in range(1000):
        try:
            ask(url, "GET", "/v1/health")
        except OSError:
            return True
    return False


def test_what_it_cannot_start_with_is_refused_with_a_reason(tmp_path: Path) -> None:
    command_line = CommandLine(tmp_path)
    (tmp_path / "bad.toml").write_text("[[step]]\nat_s = 1\nfaults = ['stal']\n", encoding="utf-8")

    script = command_line.run("model-sim", "--script", "bad.toml")
    fault = command_line.run("model-sim", "--fault", "stal")
    setting = command_line.run("model-sim", "--set", "windo=3")

    assert [ran.code for ran in (script, fault, setting)] == [2, 2, 2]
    assert "did you mean stall" in script.err
    assert "did you mean stall" in fault.err
    assert "did you mean window" in setting.err
    assert [ran.out for ran in (script, fault, setting)] == ["", "", ""]


async def test_every_fault_is_the_same_from_the_process_as_in_the_tests(tmp_path: Path) -> None:
    """The process runs on another event loop, which writes and closes in its own way."""
    fast = [f"{name}={value}" for name, value in FAST.items()]
    with running(
        CommandLine(tmp_path), *(part for each in fast for part in ("--set", each))
    ) as sim:
        there = There(sim.told("serving")[0]["port"])
        names = [name for name in EXPECTED if name not in ALONE]
        gots = await asyncio.gather(
            *(post(there, chat(), quiet_s=QUIET_S, x_sim_fault=rule(name)) for name in names)
        )

    wrong = {
        name: got
        for name, got in zip(names, gots, strict=True)
        if not EXPECTED[name].holds(got) or got.ended != EXPECTED[name].ended
    }
    assert not wrong


@dataclass
class There:
    """Is where a simulator of another process listens."""

    port: int


def test_it_lists_its_faults(tmp_path: Path) -> None:
    listed = CommandLine(tmp_path).run("model-sim", "--list-faults")

    assert listed.code == 0
    assert "reset-mid-chunk" in listed.out
    assert "at_token" in listed.out


def test_the_process_refuses_connections_and_gets_its_port_back(tmp_path: Path) -> None:
    with running(CommandLine(tmp_path)) as sim:
        told = sim.told("serving")[0]
        ask(told["control_url"], "POST", "/sim/faults", {"refuse_s": 0.5})
        with pytest.raises(ConnectionRefusedError):
            ask(told["base_url"], "GET", "/v1/health")
        wait_until(lambda: serves(told["base_url"]), WAIT_S, "the simulator listens again")


def serves(url: str) -> bool:
    """Return whether somebody answers."""
    try:
        return ask(url, "GET", "/v1/health")[0] == 200
    except ConnectionRefusedError:
        return False
