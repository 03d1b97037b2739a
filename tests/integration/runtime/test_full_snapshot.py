"""Holds the snapshot of a running process to being full."""

from services.runtime.call import Group
from services.runtime.client import open_channel
from services.runtime.durations import to_seconds
from services.runtime.topology import DOMAIN
from sixhop.gateway.v1 import gateway_pb2
from sixhop.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from sixhop.runtime.v1 import runtime_pb2
from sixhop.runtime.v1.runtime_pb2_grpc import RuntimeServiceStub
from sixhop.type.v1.run_pb2 import Question
from tests.integration.runtime.suite import running
from tests.requirements import requirement

REQUEST = runtime_pb2.GetSnapshotRequest()


@requirement("health:full-snapshot")
async def test_a_process_tells_all_there_is_to_know_about_it() -> None:
    async with running(ENGINE__ENABLED="true") as suite:
        domain = suite.hops[DOMAIN].runtime
        domain.path_estimate = lambda: 4.5
        async with open_channel(suite.config.address("gateway")) as channel:
            ask = gateway_pb2.AskRequest(question=Question(text="hello"), agent="chat")
            await GatewayServiceStub(channel).Ask(ask, timeout=10.0)
            gateway = await RuntimeServiceStub(channel).GetSnapshot(REQUEST)
        async with open_channel(suite.config.address(DOMAIN)) as channel:
            seen = await RuntimeServiceStub(channel).GetSnapshot(REQUEST)

    assert (seen.engine_enabled, seen.call_count, seen.queued_count) == (True, 1, 0)
    assert to_seconds(seen.path_latency) == 4.5
    assert gateway.path_latency == gateway.p50_latency
    assert seen.p50_latency == seen.max_last_latency
    assert 0 < to_seconds(seen.p50_work_latency) < to_seconds(seen.p50_latency)
    assert not seen.HasField("estimated_qps"), "one call tells nothing about more"
    assert (seen.admission.served_count, seen.admission.limit_kind) == (1, "fixed")
    assert len(seen.admission.levels) == 4
    assert (seen.HasField("shed"), gateway.HasField("shed")) == (False, True)
    assert not seen.ejection.ejected
    assert seen.HasField("event_loop")
    assert {group.group for group in seen.bulkheads} == set(Group)
    (tool,) = [each for each in seen.dependencies if each.key.startswith("tool/")]
    assert tool.breaker_state == runtime_pb2.BREAKER_STATE_CLOSED
    assert tool.retry_tokens > 0
    assert tool.adaptive_timeout.sample_count == 1


@requirement("health:full-snapshot")
async def test_a_process_without_the_engine_says_so() -> None:
    async with running(ENGINE__ENABLED="false") as suite:
        async with open_channel(suite.config.address(DOMAIN)) as channel:
            seen = await RuntimeServiceStub(channel).GetSnapshot(REQUEST)

    assert not seen.engine_enabled
    assert not seen.HasField("admission")
    assert not seen.HasField("estimated_qps")
