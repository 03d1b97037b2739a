"""Lets a model hop say that it waits, and looks at what a client and the hops make of it."""

from collections.abc import AsyncIterator

from services.runtime.client import open_channel
from services.runtime.durations import to_duration
from sixhop.gateway.v1 import gateway_pb2
from sixhop.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from sixhop.model.v1 import model_pb2
from sixhop.type.v1 import run_pb2
from tests.integration.runtime.suite import CLOCK, finished, run_model, running, text
from tests.requirements import requirement

REQUEST = gateway_pb2.RunRequest(question=run_pb2.Question(text="hello"))
WAITS = [("queued", 0.2), ("reasoning", 1.2)]


async def waits_then_writes() -> AsyncIterator[model_pb2.GenerateResponse]:
    """Say twice what is waited for, and write a word."""
    for state, silence_s in WAITS:
        yield model_pb2.GenerateResponse(
            thinking=model_pb2.GenerationWait(
                state=state,
                silence_duration=to_duration(silence_s),
                remaining_duration=to_duration(7.0),
            )
        )
        await CLOCK.sleep(0.05)
    yield text("one")
    yield finished()


@requirement("heartbeat:reaches-the-client")
async def test_a_client_is_told_that_the_model_hop_waits_and_for_what() -> None:
    async with running() as suite:
        suite.agent = run_model
        suite.model.generation = waits_then_writes
        async with open_channel(suite.config.address("gateway")) as channel:
            call = GatewayServiceStub(channel).Run(REQUEST, timeout=10)
            events = [response.event async for response in call]

    told = [event.thinking for event in events if event.WhichOneof("event") == "thinking"]
    mine = [thinking for thinking in told if thinking.hop == "model"]
    assert [(each.state, each.silence_duration.ToTimedelta().total_seconds()) for each in mine] == (
        WAITS
    )
    assert {each.remaining_duration.ToTimedelta().total_seconds() for each in mine} == {7.0}
    assert events[-1].WhichOneof("event") == "finished"


@requirement("heartbeat:is-no-answer")
async def test_no_hop_takes_a_heartbeat_for_what_an_answer_takes() -> None:
    async with running() as suite:
        suite.agent = run_model
        suite.model.generation = waits_then_writes
        async with open_channel(suite.config.address("gateway")) as channel:
            for _ in range(5):
                call = GatewayServiceStub(channel).Run(REQUEST, timeout=10)
                assert len([response async for response in call]) > len(WAITS)
        taken_s = {}
        for name in ("domain", "model"):
            estimator = suite.hops[name].estimator
            assert estimator is not None
            taken_s[name] = estimator.answer_s(0.5) or 0.0

    # The word comes after two pauses, and the heartbeat before both.
    assert min(taken_s.values()) >= 0.1
