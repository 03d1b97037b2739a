"""Holds log lines, counters and the last line of defence to what happened."""

import asyncio
import io
import json
import math
from collections.abc import Iterator
from typing import Any

import pytest

from services.runtime.call import CURRENT, Call, CallLimits, Identity, Inbound, Outcome
from services.runtime.errors import (
    DependencyFailedError,
    LoadShedError,
    NotFoundError,
    Origin,
    SelfBugError,
    SelfTimeoutError,
)
from services.runtime.journal import Journal
from services.runtime.statistics import Activity
from services.runtime.telemetry import (
    AttemptTelemetry,
    ServerErrors,
    ServerTelemetry,
    configure_logging,
    get_logger,
    outcome_of,
)
from tests.requirements import requirement
from tests.unit.runtime.fake_time import START, LoopClock

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Lines:
    """Reads what was logged."""

    def __init__(self) -> None:
        self.target = io.BytesIO()
        self.journal: Journal | None = None

    def all(self) -> list[dict[str, Any]]:
        """Return every line so far."""
        if self.journal is not None:
            self.journal.flush()
        return [json.loads(line) for line in self.target.getvalue().splitlines()]


@pytest.fixture
def lines(clock: LoopClock) -> Iterator[Lines]:
    """Log into memory while the test runs."""
    read = Lines()
    before = get_logger().journal
    read.journal = configure_logging("tool", "tool-7", "debug", clock, read.target)
    yield read
    get_logger().journal = before


def served(remaining_s: float = 10.0) -> Inbound:
    """Return a call that has just arrived."""
    identity = Identity(run_id="run-1", request_id="req-1", tenant="acme", traceparent=TRACE)
    return Inbound("tool", "ExecuteTool", False, START, START + remaining_s, identity)


async def test_a_line_tells_who_logs_for_which_run_and_what_remains(
    clock: LoopClock, lines: Lines
) -> None:
    CURRENT.set(served())
    await clock.sleep(2.5)

    get_logger().info("step_failed", step="sql")

    (line,) = lines.all()
    assert line == {
        "event": "step_failed",
        "level": "info",
        "step": "sql",
        "hop": "tool",
        "pod": "tool-7",
        "method": "ExecuteTool",
        "run_id": "run-1",
        "request_id": "req-1",
        "tenant": "acme",
        "trace_id": "0af7651916cd43dd8448eb211c80319c",
        "remaining_ms": 7500,
        "time": "1970-01-01T00:16:42.500+00:00",
    }


async def test_a_line_outside_of_any_call_tells_only_who_logs(lines: Lines) -> None:
    get_logger().info("hop_ready")

    (line,) = lines.all()
    assert set(line) == {"event", "level", "hop", "pod", "time"}


async def test_what_json_does_not_know_is_written_as_text(lines: Lines) -> None:
    get_logger().info("hop_ready", where={1}, error=KeyError("x"))

    (line,) = lines.all()
    assert (line["where"], line["error"]) == ("{1}", "'x'")


async def test_calm_lines_wait_for_each_other_and_urgent_ones_do_not(
    clock: LoopClock, lines: Lines
) -> None:
    log = get_logger()

    log.info("hop_ready")
    before = lines.target.getvalue().count(b"\n")
    log.warning("hop_not_ready")
    after_warning = lines.target.getvalue().count(b"\n")
    log.info("hop_ready")
    await clock.sleep(0.06)
    in_the_end = lines.target.getvalue().count(b"\n")

    assert (before, after_warning, in_the_end) == (0, 2, 3)


@pytest.mark.parametrize(
    ("error", "outcome", "name"),
    [
        (None, Outcome.SUCCESS, "OK"),
        (SelfTimeoutError("x"), Outcome.FAILURE, "DEADLINE_EXCEEDED/SELF_TIMEOUT"),
        (LoadShedError("x"), Outcome.IGNORED, "RESOURCE_EXHAUSTED/LOAD_SHED"),
        (NotFoundError("a", "b"), Outcome.IGNORED, "NOT_FOUND/NOT_FOUND"),
        (asyncio.CancelledError(), Outcome.IGNORED, "CANCELLED"),
        (GeneratorExit(), Outcome.IGNORED, "CANCELLED"),
        (ValueError(), Outcome.FAILURE, "INTERNAL"),
    ],
    ids=str,
)
def test_an_end_has_one_of_three_outcomes_and_a_name(
    error: BaseException | None, outcome: Outcome, name: str
) -> None:
    assert outcome_of(error) == (outcome, name)


async def test_a_call_that_ended_well_is_counted_and_logged(clock: LoopClock, lines: Lines) -> None:
    activity, inbound = Activity(), served()
    inbound.wait_s, inbound.note = 1.5, "sql"

    async with ServerTelemetry(clock, activity, log_calls=True)(inbound):
        inside = activity.inflight
        await clock.sleep(2.0)

    (line,) = lines.all()
    lengths = {key: line[key] for key in ("given_ms", "wait_ms", "work_ms", "note")}
    assert lengths == {"given_ms": 10000, "wait_ms": 1500, "work_ms": 500, "note": "sql"}
    assert (line["event"], line["outcome"], line["level"]) == ("call_ended", "OK", "info")
    assert (inside, activity.inflight, activity.call_count) == (1, 0, 1)
    assert activity.latency().average_s == pytest.approx(2.0)


async def test_good_calls_need_not_be_logged(clock: LoopClock, lines: Lines) -> None:
    async with ServerTelemetry(clock, Activity(), log_calls=False)(served()):
        pass

    assert lines.all() == []


async def test_a_failure_is_logged_with_its_cause_and_its_origin(
    clock: LoopClock, lines: Lines
) -> None:
    activity = Activity()
    error = DependencyFailedError(
        "model", "no answer", cause="read_timeout", origin=Origin("llm", reason="NO_ANSWER")
    )

    with pytest.raises(DependencyFailedError):
        async with ServerTelemetry(clock, activity, log_calls=False)(served()):
            raise error

    (line,) = lines.all()
    told = {key: line[key] for key in ("event", "outcome", "cause", "origin_hop", "origin_reason")}
    assert told == {
        "event": "call_failed",
        "outcome": "ABORTED/DEPENDENCY_FAILED",
        "cause": "read_timeout",
        "origin_hop": "llm",
        "origin_reason": "NO_ANSWER",
    }
    assert (activity.inflight, activity.error_count) == (0, 1)


@pytest.mark.parametrize(("after_s", "cause"), [(1.0, "caller_gone"), (11.0, "deadline")])
async def test_a_cancel_is_the_callers_before_the_deadline_and_the_deadlines_after(
    clock: LoopClock, lines: Lines, after_s: float, cause: str
) -> None:
    await clock.sleep(after_s)

    with pytest.raises(asyncio.CancelledError):
        async with ServerTelemetry(clock, Activity(), log_calls=True)(served()):
            raise asyncio.CancelledError

    assert [line["cause"] for line in lines.all()] == [cause]


async def test_a_call_without_a_deadline_is_logged_too(clock: LoopClock, lines: Lines) -> None:
    inbound = served(math.inf)
    CURRENT.set(inbound)

    async with ServerTelemetry(clock, Activity(), log_calls=True)(inbound):
        pass

    (line,) = lines.all()
    assert (line["given_ms"], line["remaining_ms"]) == (None, None)


@requirement("errors:bug-withheld")
async def test_what_nobody_foresaw_becomes_a_defect_with_a_traceback_in_the_log(
    lines: Lines,
) -> None:
    with pytest.raises(SelfBugError) as caught:
        async with ServerErrors()(served()):
            raise KeyError("password")

    (line,) = lines.all()
    assert (line["event"], line["level"]) == ("defect", "error")
    assert "KeyError: 'password'" in line["traceback"]
    assert caught.value.cause == "defect"


async def test_an_error_of_the_tree_passes_the_last_line_as_it_is(lines: Lines) -> None:
    error = LoadShedError("full")

    with pytest.raises(LoadShedError) as caught:
        async with ServerErrors()(served()):
            raise error

    assert caught.value is error
    assert lines.all() == []


@requirement("errors:stray-cancel")
async def test_a_cancel_that_nobody_asked_for_is_a_defect(lines: Lines) -> None:
    loser = asyncio.create_task(asyncio.Event().wait())
    loser.cancel()

    with pytest.raises(SelfBugError) as caught:
        async with ServerErrors()(served()):
            await loser

    assert caught.value.cause == "stray_cancel"
    assert [line["event"] for line in lines.all()] == ["defect"]


@requirement("errors:stray-cancel")
async def test_a_cancel_of_the_call_itself_stays_one(lines: Lines) -> None:
    async def serve() -> None:
        async with ServerErrors()(served()):
            await asyncio.Event().wait()

    serving = asyncio.create_task(serve())
    await asyncio.sleep(0)
    serving.cancel()
    await asyncio.wait({serving})

    assert serving.cancelled()
    assert lines.all() == []


async def test_the_end_of_a_generator_is_no_defect(lines: Lines) -> None:
    with pytest.raises(GeneratorExit):
        async with ServerErrors()(served()):
            raise GeneratorExit

    assert lines.all() == []


async def test_attempts_are_counted_until_they_end(clock: LoopClock) -> None:
    activity = Activity()
    telemetry = AttemptTelemetry(clock, activity)
    call = Call("model", "Generate", False, served(), CallLimits(step_timeout_s=5.0))

    async with telemetry(call):
        inside = activity.outgoing
    with pytest.raises(LoadShedError):
        async with telemetry(call):
            raise LoadShedError("full")

    assert (inside, activity.outgoing) == (1, 0)


async def test_a_failed_attempt_is_logged_with_what_it_was_given(
    clock: LoopClock, lines: Lines
) -> None:
    call = Call("model", "Generate", False, served(), CallLimits(step_timeout_s=5.0), note="x")
    call.attempt, call.attempt_timeout_s = 2, 4.5

    async def attempt() -> None:
        async with AttemptTelemetry(clock, Activity())(call):
            await clock.sleep(1.25)
            raise SelfTimeoutError("slow", cause="deadline")

    with pytest.raises(SelfTimeoutError):
        await attempt()

    (line,) = lines.all()
    wanted = {
        "event": "attempt_failed",
        "dependency": "model",
        "dependency_method": "Generate x",
        "outcome": "DEADLINE_EXCEEDED/SELF_TIMEOUT",
        "cause": "deadline",
        "given_ms": 4500,
        "used_ms": 1250,
    }
    assert wanted.items() <= line.items()
