"""Tests the verb `shed`, and `health --watch`, against a suite whose engine is on."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from services.runtime.topology import DOMAIN, GATEWAY, HOPS
from sixhop.gateway.v1 import gateway_pb2
from sixhop.type.v1.run_pb2 import Question
from tests.e2e.cli import CommandLine, Up, running_up
from tests.e2e.suite import wait_until
from tests.processes import Child
from tests.requirements import requirement

KEY = "open-sesame-4711"
SEEN_WITHIN_S = 20.0
FROZEN_WITHIN_S = 6.0
"""Four times what it takes, and long before a line of what is as it was."""
QUESTION = "SELECT 1 AS one"
ASK = "/sixhop.gateway.v1.GatewayService/Ask"


@pytest.fixture(scope="module")
def command_line(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """Return a command line with the engine on and an operator's key."""
    settings = {"SIXHOP_ENGINE__ENABLED": "true", "SIXHOP_OPERATOR__KEY": KEY, "USER": "ada"}
    return CommandLine(tmp_path_factory.mktemp("shed"), **settings)


@pytest.fixture(scope="module")
def up(command_line: CommandLine) -> Iterator[Up]:
    """Return the suite of this module."""
    with running_up(command_line) as running:
        yield running


@pytest.fixture
def open_door(command_line: CommandLine, up: Up) -> Iterator[None]:
    """Leave the door open, whatever a test has ordered."""
    yield
    command_line.run("shed", "--end")


def door(command_line: CommandLine) -> dict[str, Any]:
    """Return how the gateway's fast-fail switch stands."""
    hops = command_line.run("health", "--json").document["hops"]
    (shed,) = [hop["snapshot"]["shed"] for hop in hops if hop["hop"] == GATEWAY]
    return dict(shed)


def asked(port: int) -> str:
    """Ask a question at once, without the start of a command; return the code of the answer."""
    request = gateway_pb2.AskRequest(question=Question(text=QUESTION), agent="probe_sql")
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        ask = channel.unary_unary(
            ASK,
            request_serializer=gateway_pb2.AskRequest.SerializeToString,
            response_deserializer=gateway_pb2.AskResponse.FromString,
        )
        try:
            ask(request, timeout=30.0)
        except grpc.RpcError as error:
            return str(error.code().name)
    return "OK"


@requirement("cli:shed", "shed:by-order")
def test_a_door_that_was_closed_for_a_while_opens_by_itself(
    command_line: CommandLine, up: Up, open_door: None
) -> None:
    port = command_line.ports[GATEWAY]
    before = asked(port)
    ran = command_line.run("shed", "--reason", "the database moves", "--for", "6s")
    during = asked(port)
    wait_until(lambda: asked(port) == "OK", SEEN_WITHIN_S, "the order is over")

    log = _gateway_log(command_line)
    changes = [line for line in log if line["event"] == "shed_changed"]
    # Other tests give orders as well, before this one or after it.
    first = [line["problem"] for line in changes].index("the database moves")
    closed, over = changes[first : first + 2]
    assert (before, ran.code, during) == ("OK", 0, "RESOURCE_EXHAUSTED")
    assert ran.out.startswith("the gateway refuses all calls for 6.00 s, until ")
    assert (closed["lasts_s"], closed["by"], closed["up_to"]) == (6.0, "operator", "CRITICAL_PLUS")
    assert closed["operator"].startswith("ada@")
    assert (over["problem"], over["up_to"]) == ("over", None)
    assert KEY not in str(log)


@requirement("cli:shed", "shed:by-order")
def test_an_order_is_obeyed_at_once_told_to_who_asks_and_ended_by_hand(
    command_line: CommandLine, up: Up, open_door: None
) -> None:
    given = command_line.run("shed", "--reason", "too much", "--for", "10m", "--json")
    refused = command_line.run("ask", QUESTION, "--agent", "probe_sql", "--json")
    closed = door(command_line)
    ended = command_line.run("shed", "--end")
    again = command_line.run("shed", "--end", "--json")
    answered = command_line.run("ask", QUESTION, "--agent", "probe_sql", "--json")

    order, error = given.document["order"], refused.document["error"]
    assert (given.code, refused.code, ended.code, answered.code) == (0, 1, 0, 0)
    assert (order["reason"], order["up_to"], order["remaining_s"]) == (
        "too much",
        "CRITICAL_PLUS",
        600.0,
    )
    assert (error["code"], error["reason"], error["cause"]) == (
        "RESOURCE_EXHAUSTED",
        "LOAD_SHED",
        "operator",
    )
    assert 0 < error["retry_after_s"] <= 60
    assert "too much" in error["message"]
    assert (closed["state"], closed["order"]["reason"]) == ("closed", "too much")
    assert "too much" in ended.out
    assert (again.code, again.document) == (0, {"ok": True, "ended": None})


@requirement("cli:shed", "shed:only-by-operators", "cli:exit-codes")
@pytest.mark.parametrize(
    ("key", "says"), [("sesame", "not the operator's key"), ("", "needs the operator's key")]
)
def test_who_has_not_the_key_is_refused_and_told_what_to_set(
    command_line: CommandLine, up: Up, key: str, says: str
) -> None:
    ran = command_line.run("shed", "--reason", "mischief", "--for", "60s", SIXHOP_OPERATOR__KEY=key)

    assert ran.code == 2
    assert says in ran.err
    assert "SIXHOP_OPERATOR__KEY" in ran.err
    assert door(command_line)["state"] == "open"


@requirement("cli:shed", "cli:exit-codes")
def test_without_a_suite_the_command_says_so(command_line: CommandLine) -> None:
    ran = command_line.run("shed", "--end", "--gateway", "127.0.0.1:1")

    assert ran.code == 2
    assert "no suite answers at 127.0.0.1:1" in ran.err


@requirement("cli:breaker", "breaker:by-order")
def test_a_breaker_is_held_open_and_reset_by_the_command(command_line: CommandLine, up: Up) -> None:
    port = command_line.ports[GATEWAY]
    place = ("routing", "--hop", GATEWAY)
    before = asked(port)
    held = command_line.run("breaker", "open", *place, "--for", "60s", "--reason", "it is slow")
    during = asked(port)
    reset = command_line.run("breaker", "reset", *place, "--json")
    after = asked(port)

    assert (held.code, reset.code) == (0, 0)
    assert "refuses every call to routing for 60.00 s" in held.out
    assert reset.document["breakers"][0]["state"] == "closed"
    assert (before, during, after) == ("OK", "ABORTED", "OK")


@requirement("cli:health-watch", "health:watch")
def test_whoever_watches_sees_the_door_close_and_open(
    command_line: CommandLine, up: Up, open_door: None
) -> None:
    child = command_line.child("watch", "health", "--watch", "--json")
    child.start()
    try:
        _wait(child, lambda state: state["cause"] == "first", *HOPS)
        command_line.run("shed", "--reason", "too much", "--for", "10m")
        _wait(child, lambda state: _changed(state, "closed"), GATEWAY)
        command_line.run("shed", "--end")
        _wait(child, lambda state: _changed(state, "open"), GATEWAY)
        tasks = [state["snapshot"]["task_count"] for state in _states(child)]
        child.send(signal.SIGINT)
        code = child.wait(SEEN_WITHIN_S)
    finally:
        child.end()

    assert code == 0
    # A watch is no call: with one open at every hop, no task of a call is left.
    assert min(tasks) == 0


@requirement("cli:health-watch")
def test_whoever_watches_sees_a_hop_die_and_come_back(command_line: CommandLine, up: Up) -> None:
    child = command_line.child("watch-restart", "health", "--watch")
    child.start()
    try:
        wait_until(lambda: len(_lines(child, DOMAIN)) == 1, SEEN_WITHIN_S, "domain is seen")
        up.processes()[DOMAIN].kill()
        wait_until(lambda: len(_lines(child, DOMAIN)) >= 2, SEEN_WITHIN_S, "its end is seen")
        wait_until(
            lambda: " serving" in _lines(child, DOMAIN)[-1], SEEN_WITHIN_S, "its return is seen"
        )
        child.send(signal.SIGTERM)
        code = child.wait(SEEN_WITHIN_S)
    finally:
        child.end()

    assert code == 0
    assert "unreachable" in _lines(child, DOMAIN)[1]


@requirement("cli:health-watch")
def test_whoever_watches_sees_a_hop_freeze_long_before_its_next_line_is_due(
    command_line: CommandLine, up: Up
) -> None:
    child = command_line.child("watch-frozen", "health", "--watch")
    child.start()
    try:
        wait_until(lambda: len(_lines(child, DOMAIN)) == 1, SEEN_WITHIN_S, "domain is seen")
        up.processes()[DOMAIN].suspend()
        try:
            wait_until(
                lambda: " silent" in _lines(child, DOMAIN)[-1], FROZEN_WITHIN_S, "it is silent"
            )
        finally:
            up.processes()[DOMAIN].resume()
        wait_until(
            lambda: " serving" in _lines(child, DOMAIN)[-1], SEEN_WITHIN_S, "its return is seen"
        )
    finally:
        child.end()


def _changed(state: dict[str, Any], door_state: str) -> bool:
    shed = (state["snapshot"] or {}).get("shed") or {}
    return (state["cause"], shed.get("state")) == ("change", door_state)


def _states(child: Child) -> list[dict[str, Any]]:
    lines = child.out.read_text(encoding="utf-8").splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


def _lines(child: Child, hop: str) -> list[str]:
    return [line for line in child.out.read_text().splitlines() if f" {hop} " in line]


def _wait(child: Child, seen: Any, *hops: str) -> None:
    """Wait until a state was seen of each of these hops."""
    wait_until(
        lambda: set(hops) <= {state["hop"] for state in _states(child) if seen(state)},
        SEEN_WITHIN_S,
        f"the watch shows {', '.join(hops)}",
    )


def _gateway_log(command_line: CommandLine) -> list[dict[str, Any]]:
    state = Path(command_line.environment["XDG_STATE_HOME"])
    (log,) = state.glob(f"**/{GATEWAY}.log")
    lines = log.read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]
