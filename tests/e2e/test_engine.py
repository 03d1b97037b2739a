"""Tests the client-side policies in real processes: a slow part costs its own users only."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest
import pytest_asyncio

from gateway.cli.health import health
from services.runtime.topology import DOMAIN, HOPS, TOOL
from sixhop.domain.v1 import domain_pb2
from sixhop.domain.v1.domain_pb2_grpc import DomainServiceStub
from sixhop.runtime.v1 import runtime_pb2
from sixhop.type.v1 import run_pb2
from tests.e2e.client import POLL_S, Client, Ended, Running, open_client
from tests.e2e.suite import WAIT_S, Suite, eventually, running_suite
from tests.requirements import requirement

OPEN_DURATION_S = 2.0
MAX_PROBES = 3
REFUSED_WITHIN_S = 0.005
"""How soon an open breaker refuses."""
STATES = runtime_pb2.BreakerState
HATCH, FAULTY, SPARE = "tool/hatch", "tool/faulty", "tool/spare"
ENGINE = {
    "SIXHOP_ENGINE__ENABLED": "true",
    "SIXHOP_BREAKER__OPEN_DURATION_S": str(OPEN_DURATION_S),
}
NO_BREAKER = {"SIXHOP_BREAKER__MIN_CALLS": "1000000"}


@pytest.fixture(scope="module")
def strict_suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """Return a suite with the engine on and the policies as they are by default."""
    with running_suite(tmp_path_factory.mktemp("strict"), **ENGINE) as started:
        yield started


@pytest_asyncio.fixture
async def strict(strict_suite: Suite) -> AsyncIterator[Client]:
    """Return a client of the suite with the default policies."""
    async with open_client(strict_suite) as opened:
        await opened.warm()
        yield opened


@pytest_asyncio.fixture
async def loose(tmp_path: Path) -> AsyncIterator[Client]:
    """Return a client of a suite whose breakers let every failure pass."""
    with running_suite(tmp_path, **ENGINE, **NO_BREAKER) as started:
        async with open_client(started) as opened:
            await opened.warm()
            yield opened


def tool_run(client: Client, tool: str, deadline_s: float = 30.0, **arguments: Any) -> Running:
    """Start a run that executes one tool."""
    question = f"{tool} {json.dumps(arguments)}"
    return client.run(question, agent="probe_tool", deadline_s=deadline_s)


async def seen_in(client: Client, key: str, state: "STATES.ValueType") -> None:
    """Wait until the domain hop's breaker of a callee is in a state."""
    async with asyncio.timeout(WAIT_S):
        while True:
            if (await client.dependency(DOMAIN, key)).breaker_state == state:
                return
            await asyncio.sleep(POLL_S)


async def changes(client: Client, key: str, count: int) -> list[tuple[str, str]]:
    """Return the first changes of a breaker that the domain hop has logged: state and reason."""

    def look() -> Sequence[list[tuple[str, str]]]:
        lines = client.suite.child(DOMAIN).events(f'"{key}"')
        found = [(e["now"], e["reason"]) for e in lines if e["event"] == "breaker_changed"]
        return [found[:count]] if len(found) >= count else []

    return await eventually(look, WAIT_S, f"{count} changes of the breaker of {key} are logged")


def arrivals(log: Path) -> int:
    """Return how many executions a tool has seen that writes a byte for each."""
    return log.stat().st_size if log.exists() else 0


async def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for what is bound to happen."""
    await eventually(lambda: [True] if condition() else [], WAIT_S, what)


def refused_s(run: Ended) -> float:
    """Return how long the attempt took that the breaker has refused."""
    (report,) = [r for r in run.reports if "CIRCUIT_OPEN" in r.outcome and r.hop == TOOL]
    return report.used_s


async def shown_by_health(client: Client, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Return what `sixhop health` shows of the domain hop's callees, by key."""
    environ = {
        f"SIXHOP_{hop.upper()}__PORT": client.suite.address(hop).rpartition(":")[2] for hop in HOPS
    }
    await health(environ | {"SIXHOP_MODEL__BASE_URL": "http://127.0.0.1:9/v1"}, as_json=True)
    hops = {hop["hop"]: hop for hop in json.loads(capsys.readouterr().out)["hops"]}
    return {each["key"]: each for each in hops[DOMAIN]["dependencies"]}


@requirement("breaker:opens-and-heals", "breaker:others-go-on", "cli:health-dependencies")
async def test_a_slow_tool_is_cut_off_alone_and_comes_back_by_probes(
    strict: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await strict.tools_known()
    log = tmp_path / "arrivals"
    hanging = [tool_run(strict, "hatch", folder=str(tmp_path)) for _ in range(3)]
    await until(lambda: arrivals(log) == 3, "three calls hang in the tool")
    await seen_in(strict, HATCH, STATES.BREAKER_STATE_OPEN)

    # Others hang still, and these have their answer already.
    refused = [await tool_run(strict, "hatch", folder=str(tmp_path)).end() for _ in range(5)]
    others = [await strict.run("SELECT 1", agent="probe_sql").end() for _ in range(10)]
    shown = await shown_by_health(strict, capsys)

    assert {(run.code, run.details.get("originReason")) for run in refused} == {
        (grpc.StatusCode.ABORTED, "CIRCUIT_OPEN")
    }, refused[0]
    assert min(map(refused_s, refused)) < REFUSED_WITHIN_S
    assert arrivals(log) == 3
    assert {run.code for run in others} == {grpc.StatusCode.OK}, others
    assert (shown[HATCH]["breaker_state"], shown[HATCH]["breaker_reason"]) == ("open", "slow_calls")
    assert shown["tool/sql"]["breaker_state"] == "closed"

    # It is no better when the time is over: a few find out, and are the only ones to wait.
    await seen_in(strict, HATCH, STATES.BREAKER_STATE_HALF_OPEN)
    probing = [tool_run(strict, "hatch", folder=str(tmp_path)) for _ in range(8)]
    await seen_in(strict, HATCH, STATES.BREAKER_STATE_OPEN)
    await until(lambda: arrivals(log) == 3 + MAX_PROBES, "the probes hang in the tool")

    (tmp_path / "open").touch()
    ended = [await running.end() for running in (*hanging, *probing)]
    await seen_in(strict, HATCH, STATES.BREAKER_STATE_HALF_OPEN)
    again = [await tool_run(strict, "hatch", folder=str(tmp_path)).end() for _ in range(5)]

    assert [run.code for run in ended].count(grpc.StatusCode.OK) == 3 + MAX_PROBES
    assert arrivals(log) == 3 + MAX_PROBES + len(again)
    assert {run.code for run in again} == {grpc.StatusCode.OK}, again
    assert await changes(strict, HATCH, 5) == [
        ("open", "slow_calls"),
        ("half_open", "open_over"),
        ("open", "probe_slow"),
        ("half_open", "open_over"),
        ("closed", "probe_succeeded"),
    ]


@requirement("breaker:degrades-at-once")
async def test_calls_to_a_sick_tool_degrade_at_once(strict: Client, tmp_path: Path) -> None:
    await strict.tools_known()
    (tmp_path / "sick").touch()
    async with asyncio.timeout(WAIT_S):
        while (await strict.dependency(DOMAIN, SPARE)).breaker_state != STATES.BREAKER_STATE_OPEN:
            await tool_run(strict, "spare", folder=str(tmp_path)).end()

    runs = [await tool_run(strict, "spare", folder=str(tmp_path)).end() for _ in range(5)]
    lines = [await strict.suite.line(DOMAIN, run.run_id, "call_ended") for run in runs]

    assert {run.code for run in runs} == {grpc.StatusCode.OK}, runs[0]
    assert {each.mechanism for run in runs for each in run.degradations} == {"default"}
    # Not only the refusal: all that the hop did for the run.
    assert min(line["work_ms"] for line in lines) <= 1000 * REFUSED_WITHIN_S


@requirement("retry:budget")
async def test_a_callee_that_always_fails_sees_a_tenth_more_attempts_than_calls(
    loose: Client, tmp_path: Path
) -> None:
    await loose.tools_known()
    log = tmp_path / "arrivals"
    before = (await loose.dependency(DOMAIN, FAULTY)).retry_count
    calls = 40

    # The deadline is long, so that nothing but the budget speaks against a repetition.
    runs = [
        await tool_run(loose, "faulty", deadline_s=60.0, log=str(log)).end() for _ in range(calls)
    ]

    attempts = len(log.read_text().splitlines())
    repeated = (await loose.dependency(DOMAIN, FAULTY)).retry_count - before
    assert {run.details.get("originReason") for run in runs} == {"SELF_UNAVAILABLE"}, runs[0]
    assert calls < attempts <= 1.2 * calls
    assert attempts == calls + repeated


@requirement("retry:none-after-the-deadline")
async def test_nothing_is_repeated_when_the_time_is_up(strict: Client, tmp_path: Path) -> None:
    await strict.tools_known()
    log = tmp_path / "log"
    # From here on it is known that an answer takes a fifth of a second: half as much again has to
    # be left, and of these 0.7 s less than a quarter is, after the domain hop's first wait.
    for _ in range(3):
        good = await asyncio.gather(
            *(
                tool_run(
                    strict, "faulty", log=str(tmp_path / "good"), fails=False, length_s=0.2
                ).end()
                for _ in range(8)
            )
        )
        assert {run.code for run in good} == {grpc.StatusCode.OK}, good

    with_time = await tool_run(strict, "faulty", deadline_s=5.0, log=str(tmp_path / "long")).end()
    runs = [await tool_run(strict, "faulty", deadline_s=0.7, log=str(log)).end() for _ in range(3)]
    await strict.idle_after(runs[-1].ended)

    came = [float(line) for line in log.read_text().splitlines()]
    assert with_time.details["originReason"] == "SELF_UNAVAILABLE"
    assert len((tmp_path / "long").read_text().splitlines()) == 2
    assert len(came) == 3
    assert all(at < run.began + 0.7 for at, run in zip(came, runs, strict=True))
    assert (await strict.dependency(DOMAIN, FAULTY)).breaker_state == STATES.BREAKER_STATE_CLOSED


@requirement("breaker:short-deadlines-say-nothing")
async def test_short_deadlines_leave_the_breaker_of_a_healthy_callee_closed(
    strict: Client, tmp_path: Path
) -> None:
    await strict.tools_known()
    log = tmp_path / "log"
    arguments: dict[str, Any] = {"log": str(log), "length_s": 0.3}
    question = run_pb2.Question(text=f"steady {json.dumps(arguments)}")
    request = domain_pb2.RunAgentRequest(question=question, agent="probe_tool")
    stub = DomainServiceStub(strict.channels[DOMAIN])

    async def cut_off(deadline_s: float) -> None:
        with pytest.raises(grpc.aio.AioRpcError):
            async for _ in stub.RunAgent(request, timeout=deadline_s):
                pass

    # The tool is given 0.12 to 0.27 s of these. Three failures in ten would open its breaker.
    for _ in range(3):
        await asyncio.gather(*map(cut_off, (0.2, 0.25, 0.3, 0.35, 0.4, 0.45)))
    came = arrivals(log)
    runs = [await tool_run(strict, "steady", **arguments).end() for _ in range(2)]

    breaker = await strict.dependency(DOMAIN, "tool/steady")
    assert came >= 10
    assert {run.code for run in runs} == {grpc.StatusCode.OK}, runs
    assert breaker.breaker_state == STATES.BREAKER_STATE_CLOSED
    assert (breaker.call_count, breaker.failure_ratio) == (2, 0.0)
