"""Holds the budget arithmetic to what each callee sees: real calls, all hops."""

import itertools

import grpc
import pytest

from services.domain.agent import Answer
from services.domain.run import Run
from services.runtime.call import Inbound
from services.runtime.client import open_channel
from services.runtime.policies.deadline import margin_s
from sixhop.gateway.v1 import gateway_pb2
from sixhop.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from sixhop.type.v1.run_pb2 import Question
from tests.integration.runtime.suite import CLOCK, Suite, run_model, run_tool, running
from tests.requirements import requirement

TOLERANCE, SLACK_S = 1.04, 0.005
"""gRPC may send a timeout that is up to 4 % larger than the one it was given."""

ASK = gateway_pb2.AskRequest(question=Question(text="hello"))


async def asked(suite: Suite, timeout_s: float | None) -> gateway_pb2.AskResponse:
    """Ask the suite's gateway."""
    async with open_channel(suite.config.address("gateway")) as channel:
        return await GatewayServiceStub(channel).Ask(ASK, timeout=timeout_s)


def most(caller: Inbound, *, streaming: bool) -> float:
    """Return the most that a callee may see as its time remaining."""
    given_s = caller.time_remaining_on_arrival_s
    allowed_s = given_s - margin_s(given_s) if streaming else 0.6 * given_s
    return allowed_s * TOLERANCE + SLACK_S


@requirement("deadline:shrinks-hop-by-hop")
@pytest.mark.parametrize("deadline_s", [4.0, 8.0, 30.0, 110.0])
async def test_the_deadline_shrinks_at_each_of_six_hops(deadline_s: float) -> None:
    async with running() as suite:
        answer = await asked(suite, deadline_s)

        seen = {hop: suite.arrived(hop) for hop in suite.hops}

    assert answer.text == "two words"
    assert seen["gateway"].time_remaining_on_arrival_s <= deadline_s * TOLERANCE
    for caller, callee, streaming in (
        ("gateway", "routing", True),
        ("routing", "domain", True),
        ("domain", "tool", False),
        ("tool", "model", True),
    ):
        got_s = seen[callee].time_remaining_on_arrival_s
        allowed_s = most(seen[caller], streaming=streaming)
        assert got_s <= allowed_s, callee
        # Neither may it be next to nothing: the time went to nobody else.
        least_s = min(allowed_s, 20.0) * 0.5 if streaming else min(allowed_s * 0.5, 10.0)
        assert got_s >= least_s - 0.3, callee


@requirement("deadline:shrinks-hop-by-hop")
async def test_a_model_called_by_the_agent_itself_gets_a_streams_part() -> None:
    async with running() as suite:
        suite.agent = run_model

        await asked(suite, 8.0)

        got_s = suite.arrived("model").time_remaining_on_arrival_s
        assert got_s <= most(suite.arrived("domain"), streaming=True)
        assert got_s >= 4.0


@requirement("deadline:shrinks-hop-by-hop")
async def test_a_call_late_in_a_run_gets_its_part_of_what_is_left_then() -> None:
    async with running() as suite:
        left: list[float] = []

        async def late(run: Run) -> Answer:
            await CLOCK.sleep(0.3)
            left.append(suite.arrived("domain").deadline - CLOCK.now())
            return await run_tool(run)

        suite.agent = late

        await asked(suite, 4.0)

        got_s = suite.arrived("tool").time_remaining_on_arrival_s
        assert got_s <= 0.6 * left[0] * TOLERANCE + SLACK_S


@requirement("deadline:missing-refused")
@pytest.mark.parametrize(("timeout_s", "expected"), [(None, 30.0), (600.0, 120.0)])
async def test_the_gateway_gives_a_missing_deadline_and_cuts_a_long_one(
    timeout_s: float | None, expected: float
) -> None:
    async with running() as suite:
        await asked(suite, timeout_s)

        arrived = suite.arrived("gateway")
        routed = suite.arrived("routing")

    assert arrived.deadline - arrived.arrived_at == pytest.approx(expected)
    assert routed.time_remaining_on_arrival_s <= most(arrived, streaming=True)


@requirement("deadline:self-deadline")
@pytest.mark.parametrize("deadline_s", [0.04])
async def test_what_cannot_be_answered_in_time_is_refused_at_once(deadline_s: float) -> None:
    async with running() as suite:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await asked(suite, deadline_s)

        assert caught.value.code() in (
            grpc.StatusCode.FAILED_PRECONDITION,
            grpc.StatusCode.DEADLINE_EXCEEDED,
        )
        assert suite.seen == []


@requirement("deadline:self-deadline", "grpc:traps")
async def test_no_hop_works_longer_than_its_caller_waits_on_connections_that_are_used_again() -> (
    None
):
    """On one connection gRPC may send an earlier, longer timeout again: trap T8."""
    asked_s, excess = 99.0, []
    async with running() as suite, open_channel(suite.config.address("gateway")) as channel:
        while asked_s > 20:
            await GatewayServiceStub(channel).Ask(ASK, timeout=asked_s)

            seen = [suite.arrived(hop) for hop in suite.hops][::-1]
            gateway = seen[0]
            excess.append(gateway.time_remaining_on_arrival_s - asked_s)
            assert gateway.self_deadline - gateway.arrived_at <= asked_s
            for caller, callee in itertools.pairwise(seen):
                assert callee.self_deadline <= caller.self_deadline, callee.hop
            asked_s *= 0.994 if asked_s > 90 else 0.93

    assert max(excess) > 0.5, "the trap is gone: the margin of long deadlines may be, too"
