"""Holds the door in to the budget arithmetic, on grpcio-testing's fake time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2
from hypothesis import given, settings
from hypothesis import strategies as st

from services.runtime.call import CURRENT, Call, CallLimits, Identity, Inbound
from services.runtime.door import Door
from services.runtime.errors import Code, NotFoundError
from services.runtime.outgoing import Outgoing
from services.runtime.policies.deadline import margin_s
from services.runtime.server import PolicyHandlers
from services.runtime.stack import EdgeRules, server_stack
from services.runtime.statistics import Activity
from services.runtime.status import DETAILS_KEY, error_info
from services.runtime.stream import Wire
from sixhop.model.v1 import model_pb2
from sixhop.tool.v1 import tool_pb2
from tests.requirements import requirement
from tests.stacks import server_guards, single
from tests.unit.runtime.fake_rpc import Answered, call_stream, call_unary
from tests.unit.runtime.fake_time import START, LoopClock
from tests.unit.runtime.scripted import Pause, ScriptedWire

CLOCK = LoopClock()
ANSWER = tool_pb2.ExecuteToolResponse()
EVENT = model_pb2.GenerateResponse(sequence=1)
EDGE = EdgeRules(default_deadline_s=30.0, max_deadline_s=120.0)
CODES = {
    "SELF_TIMEOUT": grpc.StatusCode.DEADLINE_EXCEEDED,
    "BUDGET_TOO_SMALL": grpc.StatusCode.FAILED_PRECONDITION,
}


def door(edge: EdgeRules | None = None, hop: str = "tool") -> PolicyHandlers:
    """Return the policies of a hop, the gateway's when there are rules for the edge."""
    stack = server_stack(
        CLOCK, Activity(), edge or EdgeRules(), server_guards(CLOCK), log_calls=False
    )
    return PolicyHandlers(Door(hop, f"{hop}-7", stack, CLOCK))


def info(answered: Answered) -> error_details_pb2.ErrorInfo:
    """Return the ErrorInfo of an error."""
    details = answered.trailing[DETAILS_KEY]
    assert isinstance(details, bytes)
    found = error_info(details)
    assert found is not None
    return found


def model_from_tool(limits: CallLimits) -> Outgoing:
    """Return the way from tool to model."""
    return Outgoing("tool", "model", limits, single(CLOCK, Activity()), CLOCK)


@requirement("deadline:self-deadline")
def test_the_service_sees_exactly_the_time_that_remains() -> None:
    seen: list[Inbound] = []

    async def handler(request: Any, context: Any) -> Any:
        assert context.time_remaining() == 2.5
        seen.append(CURRENT.get())
        return ANSWER

    answered = call_unary(handler, timeout_s=2.5, policies=door())

    (inbound,) = seen
    assert answered.code is grpc.StatusCode.OK
    assert inbound.time_remaining_on_arrival_s == 2.5
    assert inbound.margin_s == pytest.approx(0.3)
    assert inbound.self_deadline == pytest.approx(START + 2.2)


@requirement("deadline:unary-share", "deadline:stream-limits")
@pytest.mark.parametrize(
    ("timeout_s", "spent_s", "unary_s", "whole_s", "first_s"),
    [(2.5, 0.0, 1.49, 2.19, 1.5), (2.5, 1.0, 0.899, 1.19, 0.9), (30.0, 0.0, 4.99, 28.9, 5.0)],
)
def test_a_child_call_gets_its_part_of_exactly_that(
    timeout_s: float, spent_s: float, unary_s: float, whole_s: float, first_s: float
) -> None:
    given: dict[str, float] = {}
    outgoing = model_from_tool(CallLimits(step_timeout_s=5.0, min_useful_s=0.0))

    async def send(call: Call) -> None:
        given["unary"] = call.attempt_timeout_s

    async def open_wire(call: Call) -> Wire[str]:
        assert call.wait_limit is not None
        given["whole"] = call.attempt_timeout_s
        given["first"] = call.wait_limit.first_wait_until()[0] - CLOCK.now()
        return ScriptedWire(CLOCK, [])

    async def handler(request: Any, context: Any) -> Any:
        await CLOCK.sleep(spent_s)
        await outgoing.unary("Generate", send)
        async with outgoing.stream("Generate", open_wire):
            return ANSWER

    answered = call_unary(handler, timeout_s=timeout_s, policies=door())

    assert answered.code is grpc.StatusCode.OK
    assert given == pytest.approx({"unary": unary_s, "whole": whole_s, "first": first_s})


@requirement("deadline:self-deadline")
@pytest.mark.parametrize(
    ("timeout_s", "at_s", "left_ms", "reason"),
    [
        (2.5, 2.2, "300", "SELF_TIMEOUT"),
        # Too little for anybody, so that nobody is to blame.
        (0.2, 0.15, "50", "BUDGET_TOO_SMALL"),
        (30.0, 29.0, "1000", "SELF_TIMEOUT"),
        (90.0, 87.0, "3000", "SELF_TIMEOUT"),
    ],
)
def test_slow_own_work_is_answered_by_the_hop_itself_before_the_deadline(
    timeout_s: float, at_s: float, left_ms: str, reason: str
) -> None:
    async def unary(request: Any, context: Any) -> Any:
        await CLOCK.sleep(3600)

    async def stream(request: Any, context: Any) -> AsyncIterator[Any]:
        yield EVENT
        await CLOCK.sleep(3600)

    for answered in (
        call_unary(unary, timeout_s=timeout_s, policies=door()),
        call_stream(stream, timeout_s=timeout_s, policies=door()),
    ):
        assert answered.at_s == pytest.approx(at_s)
        told = info(answered)
        assert (told.reason, told.metadata["cause"]) == (reason, "deadline")
        assert answered.code is CODES[reason]
        assert (told.metadata["remainingMs"], told.metadata["waitMs"]) == (left_ms, "0")


@requirement("deadline:self-deadline")
@settings(max_examples=25)
@given(st.floats(0.06, 600.0), st.floats(0.0, 2.0), st.integers(1, 5))
def test_whatever_the_service_does_the_hop_answers_before_its_caller_gives_up(
    timeout_s: float, work: float, events: int
) -> None:
    async def handler(request: Any, context: Any) -> AsyncIterator[Any]:
        for _ in range(events):
            await CLOCK.sleep(work * timeout_s / events)
            yield EVENT

    answered = call_stream(handler, timeout_s=timeout_s, policies=door())

    assert answered.at_s <= timeout_s - margin_s(timeout_s) + 1e-6
    in_time = work * timeout_s < timeout_s - margin_s(timeout_s) - 1e-6
    assert answered.code is grpc.StatusCode.OK or not in_time


@requirement("errors:fault-attribution")
def test_a_wait_that_the_deadline_cut_is_told_as_the_dependencys_failure() -> None:
    outgoing = model_from_tool(CallLimits(step_timeout_s=5.0))

    async def send(call: Call) -> None:
        await CLOCK.sleep(3600)

    async def handler(request: Any, context: Any) -> Any:
        await CLOCK.sleep(0.5)
        await outgoing.unary("Generate", send)

    answered = call_unary(handler, timeout_s=2.5, policies=door())

    told = info(answered)
    assert answered.code is grpc.StatusCode.ABORTED
    assert answered.at_s == pytest.approx(2.2)
    assert (told.reason, told.metadata["originHop"]) == ("DEPENDENCY_FAILED", "model")
    assert told.metadata["waitMs"] == "1700"


@requirement("errors:fault-attribution")
def test_a_wait_that_the_service_itself_cut_long_ago_excuses_nothing() -> None:
    """A hedge that lost, or a sibling that a task group ended, is not why time is up."""
    outgoing = model_from_tool(CallLimits(step_timeout_s=5.0))

    async def send(call: Call) -> None:
        await CLOCK.sleep(3600)

    async def handler(request: Any, context: Any) -> Any:
        with suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                await outgoing.unary("Generate", send)
        await CLOCK.sleep(3600)

    answered = call_unary(handler, timeout_s=2.5, policies=door())

    assert answered.code is grpc.StatusCode.DEADLINE_EXCEEDED
    assert info(answered).reason == "SELF_TIMEOUT"
    assert info(answered).metadata["waitMs"] == "500"


@requirement("errors:fault-attribution")
def test_a_silent_stream_is_told_by_its_limit_and_not_by_our_deadline() -> None:
    outgoing = model_from_tool(CallLimits(step_timeout_s=1.0))

    async def open_wire(call: Call) -> Wire[str]:
        return ScriptedWire(CLOCK, [Pause(3600)])

    async def handler(request: Any, context: Any) -> AsyncIterator[Any]:
        yield EVENT
        async with outgoing.stream("Generate", open_wire) as events:
            async for _ in events:
                yield EVENT

    answered = call_stream(handler, timeout_s=30.0, policies=door())

    told = info(answered)
    assert answered.code is grpc.StatusCode.ABORTED
    assert answered.at_s == pytest.approx(1.0)
    assert (told.metadata["cause"], told.metadata["originReason"]) == ("step_timeout", "NO_ANSWER")
    assert len(answered.messages) == 1


@requirement("deadline:missing-refused")
def test_without_a_deadline_an_inner_hop_does_no_work() -> None:
    async def handler(request: Any, context: Any) -> Any:
        raise AssertionError("this was to be refused")

    answered = call_unary(handler, timeout_s=None, policies=door())

    assert answered.code is grpc.StatusCode.INVALID_ARGUMENT
    assert info(answered).reason == "DEADLINE_MISSING"


@requirement("deadline:missing-refused")
@pytest.mark.parametrize(("timeout_s", "expected"), [(None, 30.0), (500.0, 120.0), (7.0, 7.0)])
def test_the_edge_gives_a_deadline_and_cuts_a_long_one(
    timeout_s: float | None, expected: float
) -> None:
    seen: list[Inbound] = []

    async def handler(request: Any, context: Any) -> Any:
        seen.append(CURRENT.get())
        await CLOCK.sleep(3600)

    answered = call_unary(handler, timeout_s=timeout_s, policies=door(EDGE, "gateway"))

    assert seen[0].deadline == START + expected
    assert answered.at_s == pytest.approx(expected - margin_s(expected))
    assert answered.code is grpc.StatusCode.DEADLINE_EXCEEDED


def test_the_time_between_two_events_is_the_services_too() -> None:
    async def handler(request: Any, context: Any) -> AsyncIterator[Any]:
        for _ in range(100):
            yield EVENT
            await CLOCK.sleep(0.85)

    answered = call_stream(handler, timeout_s=10.0, policies=door())

    assert len(answered.messages) == 11
    assert answered.at_s == pytest.approx(9.0)
    assert info(answered).reason == "SELF_TIMEOUT"


@pytest.mark.parametrize("clean", [True, False])
def test_what_a_service_holds_is_free_when_its_stream_has_ended(clean: bool) -> None:
    log: list[str] = []

    async def handler(request: Any, context: Any) -> AsyncIterator[Any]:
        try:
            yield EVENT
            if not clean:
                raise NotFoundError("tool", "x")
        finally:
            log.append("free")

    answered = call_stream(handler, timeout_s=10.0, policies=door())

    assert answered.code is (grpc.StatusCode.OK if clean else grpc.StatusCode.NOT_FOUND)
    assert log == ["free"]


@requirement("errors:stray-cancel")
def test_a_service_that_awaits_what_was_cancelled_answers_at_once() -> None:
    async def loser() -> None:
        await asyncio.Event().wait()

    async def unary(request: Any, context: Any) -> Any:
        task = asyncio.create_task(loser())
        task.cancel()
        await task

    async def stream(request: Any, context: Any) -> AsyncIterator[Any]:
        yield EVENT
        await unary(request, context)

    for answered in (
        call_unary(unary, timeout_s=30.0, policies=door()),
        call_stream(stream, timeout_s=30.0, policies=door()),
    ):
        assert answered.code is grpc.StatusCode.INTERNAL
        assert answered.at_s == 0
        assert info(answered).metadata["cause"] == "stray_cancel"


@requirement("errors:bug-withheld")
def test_a_timeout_error_of_the_service_itself_is_a_defect_and_no_timeout() -> None:
    async def handler(request: Any, context: Any) -> Any:
        raise TimeoutError("secret")

    answered = call_unary(handler, timeout_s=30.0, policies=door())

    assert answered.code is grpc.StatusCode.INTERNAL
    assert "secret" not in answered.text
    assert info(answered).reason == "SELF_BUG"


def test_the_identity_of_the_call_reaches_the_service() -> None:
    seen: list[Identity] = []

    async def handler(request: Any, context: Any) -> Any:
        seen.append(CURRENT.get().identity)
        return ANSWER

    call_unary(handler, timeout_s=1.0, policies=door(), metadata=(("x-sixhop-run-id", "run-1"),))

    assert seen[0].run_id == "run-1"


def test_our_codes_reach_the_wire_as_grpc_names_them() -> None:
    async def handler(request: Any, context: Any) -> Any:
        raise NotFoundError("tool", "x")

    answered = call_unary(handler, timeout_s=1.0, policies=door())

    assert answered.code.value[0] == int(Code.NOT_FOUND)


@requirement("heartbeat:is-no-answer")
def test_a_heartbeat_does_not_begin_an_answer() -> None:
    told: list[float] = []
    stack = server_stack(CLOCK, Activity(), EdgeRules(), server_guards(CLOCK), log_calls=False)
    policies = PolicyHandlers(
        Door("model", "model-7", stack, CLOCK, lambda inbound: told.append(CLOCK.now() - START))
    )

    async def stream(request: Any, context: Any) -> AsyncIterator[Any]:
        yield model_pb2.GenerateResponse(thinking=model_pb2.GenerationWait(state="silent"))
        await CLOCK.sleep(2.0)
        yield model_pb2.GenerateResponse(text_delta=model_pb2.GeneratedText(text="a"))

    answered = call_stream(stream, timeout_s=10.0, policies=policies)

    assert answered.code is grpc.StatusCode.OK
    assert told == [2.0]
