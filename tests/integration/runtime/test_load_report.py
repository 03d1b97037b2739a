"""Lets gRPC's own balancer read our load reports: it knows nothing of ours but the wire form."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import grpc
import pytest

from services.runtime.client import open_channel
from services.runtime.load_report import (
    LOAD_REPORT_KEY,
    LOAD_WANTED,
    LoadReport,
    load_trailer,
    read_load_report,
)
from sixhop.gateway.v1 import gateway_pb2
from sixhop.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from sixhop.type.v1.run_pb2 import Question
from tests.integration.runtime.suite import running
from tests.requirements import requirement

METHOD = "/sixhop.test.Load/Call"
BALANCED = {
    "loadBalancingConfig": [
        # Without its blackout, in which a new endpoint's reports count for nothing.
        {"weighted_round_robin": {"blackoutPeriod": "0s", "weightUpdatePeriod": "0.1s"}}
    ]
}


class Endpoint:
    """Answers everything, tells a load, and counts."""

    def __init__(self, utilization: float) -> None:
        self.utilization = utilization
        self.count = 0

    async def call(self, request: bytes, context: Any) -> bytes:
        """Answer one call."""
        self.count += 1
        report = LoadReport(rps=100, application_utilization=self.utilization)
        context.set_trailing_metadata((load_trailer(report),))
        return b""


@asynccontextmanager
async def listening(endpoint: Endpoint) -> AsyncIterator[int]:
    """Serve while the block runs; gives the port."""
    server = grpc.aio.server(options=(("grpc.so_reuseport", 0),))
    handler: Any = grpc.unary_unary_rpc_method_handler(endpoint.call)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("sixhop.test.Load", {"Call": handler}),)
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield port
    finally:
        await server.stop(None)


@requirement("load:orca-wire-form")
async def test_grpcs_weighted_round_robin_prefers_whom_our_reports_call_idle() -> None:
    idle, busy = Endpoint(0.1), Endpoint(0.9)
    async with AsyncExitStack() as exits:
        ports = [await exits.enter_async_context(listening(each)) for each in (idle, busy)]
        target = "ipv4:" + ",".join(f"127.0.0.1:{port}" for port in ports)
        options = (("grpc.service_config", json.dumps(BALANCED)),)
        channel = await exits.enter_async_context(grpc.aio.insecure_channel(target, options))
        call: Any = channel.unary_unary(METHOD)

        async def shares(calls: int) -> tuple[int, int]:
            before = (idle.count, busy.count)
            for _ in range(calls):
                await call(b"", timeout=5.0)
            return idle.count - before[0], busy.count - before[1]

        await _until_known(shares)
        preferred = await shares(100)
        idle.utilization, busy.utilization = 0.9, 0.1
        await _until_known(shares, swapped=True)
        swapped = await shares(100)

    assert preferred[0] > 3 * preferred[1]
    assert swapped[1] > 3 * swapped[0]


async def _until_known(shares: Any, *, swapped: bool = False) -> None:
    """Call until the balancer has read the reports of both and acts upon them."""
    async with asyncio.timeout(10):
        while True:
            first, second = await shares(20)
            if (second if swapped else first) > 15:
                return
            await asyncio.sleep(0.05)


@requirement("load:travels", "load:path-estimate")
async def test_every_answer_tells_its_caller_the_load_and_what_a_call_takes() -> None:
    async with running(ENGINE__ENABLED="true") as suite:
        async with open_channel(suite.config.address("gateway")) as channel:
            stub, loads = GatewayServiceStub(channel), suite.hops["domain"].loads
            # A report holds for a moment, and a path is known after a few calls.
            async with asyncio.timeout(10):
                while (report := loads.fresh("tool")) is None or report.path_s is None:
                    request = gateway_pb2.AskRequest(question=Question(text="hello"))
                    await stub.Ask(request, timeout=10.0)
        told = {
            f"{caller}→{callee}": suite.hops[caller].loads.fresh(callee)
            for caller, callee in (
                ("gateway", "routing"),
                ("routing", "domain"),
                ("domain", "tool"),
                ("tool", "model"),
            )
        }

    assert all(report is not None and report.limit == 256 for report in told.values()), told
    tool, gateway = told["domain→tool"], suite.hops["gateway"].estimator
    assert tool is not None
    assert tool.path_s is not None
    assert gateway is not None
    assert gateway.answer_s(0.5) is not None


@requirement("load:travels")
async def test_only_who_asks_is_told_all() -> None:
    async with running() as suite, open_channel(suite.config.address("gateway")) as channel:
        stub = GatewayServiceStub(channel)
        request = gateway_pb2.AskRequest(question=Question(text="hello"))
        told = []
        for metadata in ((), (LOAD_WANTED,)):
            call = stub.Ask(request, timeout=10.0, metadata=metadata)
            await call
            trailers = await call.trailing_metadata()
            told.append(LOAD_REPORT_KEY in {key for key, _ in trailers or ()})

    assert told == [False, True]


@requirement("load:travels")
async def test_an_error_tells_the_load_as_well() -> None:
    async with running() as suite, open_channel(suite.config.address("gateway")) as channel:
        request = gateway_pb2.AskRequest(question=Question(text="hello"), agent="nobody")
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await GatewayServiceStub(channel).Ask(request, timeout=10.0)

    trailers = caught.value.trailing_metadata()
    value = trailers.get(LOAD_REPORT_KEY) if trailers is not None else None
    assert isinstance(value, bytes)
    assert read_load_report(value) is not None


@requirement("load:travels")
async def test_without_the_engine_nothing_is_told() -> None:
    async with (
        running(ENGINE__ENABLED="false") as suite,
        open_channel(suite.config.address("gateway")) as channel,
    ):
        request = gateway_pb2.AskRequest(question=Question(text="hello"))
        call = GatewayServiceStub(channel).Ask(request, timeout=10.0)
        await call
        trailers = await call.trailing_metadata()

    assert LOAD_REPORT_KEY not in dict(trailers or ())
