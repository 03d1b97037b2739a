"""Tests the client-side policies of streams in real processes: how often a model is asked."""

import asyncio
import time
from pathlib import Path

from services.runtime.topology import DOMAIN, LLM, MODEL
from sixhop.domain.v1 import domain_pb2
from sixhop.domain.v1.domain_pb2_grpc import DomainServiceStub
from sixhop.runtime.v1 import runtime_pb2
from sixhop.type.v1 import run_pb2
from tests.e2e.client import Client, open_client
from tests.e2e.doors import Sender, Sent, read_all, sent
from tests.e2e.suite import running_suite
from tests.requirements import requirement

ENGINE = {"SIXHOP_ENGINE__ENABLED": "true"}
NO_BREAKER = {"SIXHOP_BREAKER__MIN_CALLS": "1000000"}
STREAM = domain_pb2.RunAgentRequest(
    question=run_pb2.Question(text="Say anything."), agent="probe_stream"
)


async def streamed(client: Client, deadline_s: float, run_id: str) -> Sent:
    """Run the agent that streams what the model says, asking the domain hop itself."""
    metadata = (("x-sixhop-run-id", run_id),)
    call = DomainServiceStub(client.channels[DOMAIN]).RunAgent(
        STREAM, timeout=deadline_s, metadata=metadata
    )
    return await sent(Sender(), read_all(call))


@requirement("retry:budget", "retry:none-after-the-deadline")
async def test_a_model_that_always_fails_is_asked_little_more_often_than_there_are_streams(
    tmp_path: Path,
) -> None:
    count, short_s = 40, 0.4
    with running_suite(tmp_path, (DOMAIN, MODEL), **ENGINE, **NO_BREAKER) as suite:
        async with open_client(suite) as client:
            await asyncio.gather(client.serving(DOMAIN), client.serving(MODEL))
            suite.provider.behave("500")
            runs = [await streamed(client, 30.0, f"long-{number}") for number in range(count)]
            late = [await streamed(client, short_s, f"short-{number}") for number in range(5)]
            await client.idle_after(time.monotonic(), (DOMAIN, MODEL))
            long = [len(suite.provider.requests(f"long-{number}")) for number in range(count)]
            short = [suite.provider.requests(f"short-{number}") for number in range(5)]

            # What has been delivered is never asked for again.
            suite.provider.behave("truncate")
            cut = await streamed(client, 30.0, "cut")
            asked = suite.provider.requests("cut")

    assert not any(run.served for run in (*runs, *late, cut))
    assert count < sum(long) <= 1.2 * count
    for run, requests in zip(late, short, strict=True):
        assert all(each["arrived_ms"] / 1000 < run.began + short_s for each in requests)
    assert len(asked) == 1


@requirement("breaker:short-deadlines-say-nothing")
async def test_short_deadlines_leave_the_breakers_of_a_healthy_model_closed(
    tmp_path: Path,
) -> None:
    deadlines_s = (0.2, 0.25, 0.3, 0.35, 0.4, 0.45)
    with running_suite(tmp_path, (DOMAIN, MODEL), **ENGINE) as suite:
        async with open_client(suite) as client:
            await asyncio.gather(client.serving(DOMAIN), client.serving(MODEL))
            suite.provider.behave("healthy", healthy={"first_chunk_after_s": 0.5})
            for wave in range(3):
                cut = await asyncio.gather(
                    *(streamed(client, each_s, f"{wave}-{each_s}") for each_s in deadlines_s)
                )
                assert not any(run.served for run in cut)
            came = sum(
                len(suite.provider.requests(f"{wave}-{each_s}"))
                for wave in range(3)
                for each_s in deadlines_s
            )
            runs = [await streamed(client, 10.0, f"long-{number}") for number in range(2)]
            breakers = [
                await client.dependency(DOMAIN, MODEL),
                await client.dependency(MODEL, LLM),
            ]

    assert came >= 10
    assert all(run.served for run in runs), runs
    for breaker in breakers:
        assert breaker.breaker_state == runtime_pb2.BREAKER_STATE_CLOSED
        assert breaker.failure_ratio == 0.0
