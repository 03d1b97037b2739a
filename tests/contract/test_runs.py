"""Holds the streams of a run to their order, and the unary twin to saying the same."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import grpc
import pytest

from services.domain.agent import Answer
from services.domain.ports import Artifact
from services.domain.run import Run
from services.runtime.client import open_channel
from services.runtime.conversation import ToolCall, call_to_wire
from services.runtime.errors import NotFoundError
from services.runtime.generation import Usage
from services.runtime.process import Hop
from services.runtime.reports import REPORTS_KEY, decode_reports
from sixhop.domain.v1 import domain_pb2
from sixhop.domain.v1.domain_pb2_grpc import (
    DomainServiceServicer,
    DomainServiceStub,
    add_DomainServiceServicer_to_server,
)
from sixhop.gateway.v1 import gateway_pb2
from sixhop.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from sixhop.routing.v1 import routing_pb2
from sixhop.routing.v1.routing_pb2_grpc import RoutingServiceStub
from sixhop.type.v1 import run_pb2
from tests.contract.wire import infos, rich_status
from tests.integration.runtime.suite import Suite, current, run_tool, running
from tests.requirements import requirement

QUESTION = run_pb2.Question(text="hello")
UNKNOWN = run_pb2.RunEvent.FromString(b"\xfa\x01\x03new")
"""An event of a later release: field 31, which no proto of today knows."""


CALL = ToolCall("a", "look_up", '{"parcel": 7}')


async def full_run(run: Run) -> Answer:
    """Do everything that an agent may do."""
    await run.tool("summarise", {}, title="first")
    run.say("wrong")
    run.ask_for([ToolCall("b", "delete", "{}")])
    run.restart("the first draft was wrong")
    run.skipped("chart", title="draw", reason="no time")
    run.say("right ")
    run.say("answer")
    run.degraded(mechanism="template", part="prose", reason="the model was late")
    run.ask_for([CALL, CALL])
    return Answer(
        model="scripted",
        usage=Usage(3, 5, True),
        artifacts=(Artifact("a.pdf", "application/pdf", b"%PDF"),),
        missing=("chart",),
        sources=("orders.csv",),
        finish_reason="tool_calls",
    )


async def run_events(suite: Suite) -> list[gateway_pb2.RunResponse]:
    """Return the stream of one run."""
    async with open_channel(suite.config.address("gateway")) as channel:
        request = gateway_pb2.RunRequest(question=QUESTION)
        return [event async for event in GatewayServiceStub(channel).Run(request, timeout=10.0)]


async def answer_of(suite: Suite) -> gateway_pb2.AskResponse:
    """Return the answer of one run."""
    async with open_channel(suite.config.address("gateway")) as channel:
        request = gateway_pb2.AskRequest(question=QUESTION)
        return await GatewayServiceStub(channel).Ask(request, timeout=10.0)


def kinds(responses: Sequence[Any]) -> list[str | None]:
    """Return the kinds of the events."""
    return [response.event.WhichOneof("event") for response in responses]


@asynccontextmanager
async def scripted_domain(*events: run_pb2.RunEvent) -> AsyncIterator[Suite]:
    """Run the suite with a domain hop that sends just these events."""

    class Scripted(DomainServiceServicer):
        async def RunAgent(
            self, request: domain_pb2.RunAgentRequest, context: Any
        ) -> AsyncIterator[domain_pb2.RunAgentResponse]:
            for number, event in enumerate(events, 1):
                yield domain_pb2.RunAgentResponse(sequence=number, event=event)

        async def ListAgents(
            self, request: domain_pb2.ListAgentsRequest, context: Any
        ) -> domain_pb2.ListAgentsResponse:
            return domain_pb2.ListAgentsResponse()

    @asynccontextmanager
    async def open_hop(hop: Hop) -> AsyncIterator[None]:
        add_DomainServiceServicer_to_server(Scripted(), hop.server)
        yield

    async with running({"domain": open_hop}) as suite:
        yield suite


def said(text: str) -> run_pb2.RunEvent:
    """Return an event with text."""
    return run_pb2.RunEvent(text_delta=run_pb2.TextDelta(text=text))


FINISHED = run_pb2.RunEvent(finished=run_pb2.RunFinished(agent="chat"))


@requirement("run:stream-rules")
async def test_a_run_is_accepted_routed_and_finished_in_order_without_gaps() -> None:
    async with running() as suite:
        suite.agent = full_run

        events = await run_events(suite)

    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    assert kinds(events) == [
        "accepted",
        "routed",
        "step_started",
        "step_finished",
        "text_delta",
        "tool_call",
        "restarted",
        "step_started",
        "step_finished",
        "text_delta",
        "degraded",
        "tool_call",
        "tool_call",
        "finished",
    ]
    assert events[0].event.accepted.budget_duration.ToTimedelta().total_seconds() <= 10.4
    assert events[1].event.routed.agent == "chat"


@requirement("run:stream-rules")
@pytest.mark.parametrize("hop", ["routing", "domain"])
async def test_the_streams_of_the_inner_hops_keep_the_same_rules(hop: str) -> None:
    async with running() as suite, open_channel(suite.config.address(hop)) as channel:
        calls: dict[str, Any] = {
            "routing": (RoutingServiceStub, "Route", routing_pb2.RouteRequest(question=QUESTION)),
            "domain": (
                DomainServiceStub,
                "RunAgent",
                domain_pb2.RunAgentRequest(agent="chat", question=QUESTION),
            ),
        }
        stub, method, request = calls[hop]
        events = [event async for event in getattr(stub(channel), method)(request, timeout=10.0)]

    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    assert kinds(events).count("finished") == 1
    assert kinds(events)[-1] == "finished"


@requirement("run:stream-rules")
async def test_a_run_that_fails_has_no_finished() -> None:
    async def wrong(run: Run) -> Answer:
        run.say("half an ans")
        raise NotFoundError("table", "orders")

    seen: list[str | None] = []

    async def watch(suite: Suite) -> None:
        async with open_channel(suite.config.address("gateway")) as channel:
            request = gateway_pb2.RunRequest(question=QUESTION)
            async for response in GatewayServiceStub(channel).Run(request, timeout=10.0):
                seen.extend(kinds([response]))

    async with running() as suite:
        suite.agent = wrong
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await watch(suite)

    assert seen == ["accepted", "routed", "text_delta"]
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


@requirement("run:ask-is-run", "conversing:deliveries")
async def test_ask_says_what_run_says() -> None:
    async with running() as suite:
        suite.agent = full_run
        events = [response.event for response in await run_events(suite)]
        async with open_channel(suite.config.address("gateway")) as channel:
            metadata = (("x-sixhop-run-id", "run-7"),)
            answer = await GatewayServiceStub(channel).Ask(
                gateway_pb2.AskRequest(question=QUESTION), timeout=10.0, metadata=metadata
            )

    last = events[-1].finished
    assert answer.run_id == "run-7"
    assert answer.text == "right answer" == events[-5].text_delta.text
    assert list(answer.tool_calls) == [event.tool_call for event in events[-3:-1]]
    assert list(answer.tool_calls) == [call_to_wire(CALL)] * 2
    assert answer.finish_reason == last.finish_reason == "tool_calls"
    assert (answer.agent, answer.model) == (last.agent, last.model) == ("chat", "scripted")
    assert answer.usage == last.usage
    assert list(answer.artifacts) == list(last.artifacts)
    assert list(answer.missing_parts) == list(last.missing_parts) == ["chart"]
    assert list(answer.sources) == list(last.sources) == ["orders.csv"]
    degraded = [event.degraded for event in events if event.WhichOneof("event") == "degraded"]
    assert list(answer.degradations) == degraded
    assert last.degraded


@requirement("run:ask-is-run")
async def test_ask_fails_as_run_fails() -> None:
    async def wrong(run: Run) -> Answer:
        run.say("half an ans")
        raise NotFoundError("table", "orders")

    async with running() as suite:
        suite.agent = wrong
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await answer_of(suite)

    (info,) = infos(rich_status(caught.value))
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND
    assert (info.reason, info.metadata["originHop"]) == ("NOT_FOUND", "domain")


@requirement("run:unknown-events")
async def test_an_event_of_a_later_release_passes_and_does_no_harm() -> None:
    async with scripted_domain(said("a"), UNKNOWN, said("b"), FINISHED) as suite:
        events = await run_events(suite)
        answer = await answer_of(suite)

    assert kinds(events) == ["accepted", "routed", "text_delta", None, "text_delta", "finished"]
    assert events[3].event.SerializeToString() == UNKNOWN.SerializeToString()
    assert answer.text == "ab"


@requirement("run:never-truncated")
@pytest.mark.parametrize("method", ["Run", "Ask"])
@pytest.mark.parametrize(
    "events",
    [(), (said("half an ans"),), (FINISHED, said("more")), (said("a"), FINISHED, FINISHED)],
    ids=["empty", "cut", "more after the end", "two ends"],
)
async def test_a_run_without_exactly_one_end_is_an_error(
    events: tuple[run_pb2.RunEvent, ...], method: str
) -> None:
    ask = run_events if method == "Run" else answer_of
    async with scripted_domain(*events) as suite:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await ask(suite)

    (info,) = infos(rich_status(caught.value))
    assert caught.value.code() is grpc.StatusCode.ABORTED
    assert info.metadata["originHop"] in ("routing", "domain")


@requirement("run:identity-travels")
async def test_the_identity_of_a_run_reaches_every_hop_and_no_client_names_its_tenant() -> None:
    metadata = (
        ("x-sixhop-run-id", "run-7"),
        ("x-request-id", "req-9"),
        ("x-sixhop-tenant", "somebody-else"),
        ("x-sixhop-criticality", "SHEDDABLE"),
    )
    async with running() as suite, open_channel(suite.config.address("gateway")) as channel:
        suite.agent = run_tool
        request = gateway_pb2.AskRequest(question=QUESTION)
        await GatewayServiceStub(channel).Ask(request, timeout=10.0, metadata=metadata)

        identities = {inbound.hop: inbound.identity for inbound in suite.seen}

    assert set(identities) == {"gateway", "routing", "domain", "tool", "model"}
    (identity,) = set(identities.values())
    assert (identity.run_id, identity.request_id, identity.tenant) == ("run-7", "req-9", "")
    assert identity.criticality.name == "SHEDDABLE"
    assert len(identity.traceparent) == 55


@requirement("run:identity-travels")
async def test_the_tenant_that_the_gateway_has_set_reaches_the_hops_behind_it() -> None:
    metadata = (("x-sixhop-tenant", "acme"), ("x-sixhop-run-id", "run-7"))
    async with running() as suite, open_channel(suite.config.address("domain")) as channel:
        request = domain_pb2.RunAgentRequest(agent="chat", question=QUESTION)
        stream = DomainServiceStub(channel).RunAgent(request, timeout=10.0, metadata=metadata)
        assert [event.sequence async for event in stream]

        tenants = {inbound.hop: inbound.identity.tenant for inbound in suite.seen}

    assert tenants == {"domain": "acme", "tool": "acme", "model": "acme"}


@requirement("gateway:bad-input")
@pytest.mark.parametrize("method", ["Run", "Ask"])
async def test_a_question_that_nobody_could_answer_goes_no_further_than_the_door(
    method: str,
) -> None:
    empty = run_pb2.Question(text=" ")
    async with running() as suite, open_channel(suite.config.address("gateway")) as channel:
        stub: Any = GatewayServiceStub(channel)
        calls: dict[str, Callable[[], Awaitable[Any]]] = {
            "Run": lambda: stub.Run(gateway_pb2.RunRequest(question=empty), timeout=5.0).read(),
            "Ask": lambda: stub.Ask(gateway_pb2.AskRequest(question=empty), timeout=5.0),
        }
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await calls[method]()

        assert {inbound.hop for inbound in suite.seen} == {"gateway"}

    (info,) = infos(rich_status(caught.value))
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert info.metadata["field"] == "question.text"


@requirement("run:unknown-agents")
async def test_an_agent_that_nobody_knows_is_not_found_and_the_known_ones_are_named() -> None:
    async with running() as suite, open_channel(suite.config.address("gateway")) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await GatewayServiceStub(channel).Ask(
                gateway_pb2.AskRequest(question=QUESTION, agent="chta"), timeout=10.0
            )

    assert caught.value.code() is grpc.StatusCode.NOT_FOUND
    assert caught.value.details() == "there is no agent named 'chta'; known: chat"


@requirement("reports:travel")
@pytest.mark.parametrize("ends_well", [True, False])
async def test_what_every_hop_was_given_and_used_reaches_the_client(ends_well: bool) -> None:
    async def agent(run: Run) -> Answer:
        answer = await run_tool(run)
        if not ends_well:
            raise NotFoundError("table", "orders")
        return answer

    async with running() as suite, open_channel(suite.config.address("gateway")) as channel:
        suite.agent = agent
        request = gateway_pb2.AskRequest(question=QUESTION)
        call = GatewayServiceStub(channel).Ask(
            request, timeout=10.0, metadata=(("x-sixhop-reports", "1"),)
        )
        with suppress(grpc.aio.AioRpcError):
            await call
        value = (await call.trailing_metadata()).get(REPORTS_KEY)

    assert isinstance(value, bytes)
    reports = {report.hop: report for report in decode_reports(value)}
    assert {hop: report.depth for hop, report in reports.items()} == {
        "routing": 1,
        "domain": 2,
        "tool": 3,
        "model": 4,
    }
    for outer, inner in itertools.pairwise(("routing", "domain", "tool", "model")):
        assert reports[inner].given_s < reports[outer].given_s
        assert reports[inner].used_s <= reports[outer].used_s
        assert reports[inner].start_s >= reports[outer].start_s
    assert reports["model"].outcome == "OK"
    assert reports["routing"].outcome == ("OK" if ends_well else "NOT_FOUND/NOT_FOUND")
    assert reports["tool"].method == "ExecuteTool summarise"


@requirement("run:identity-travels")
async def test_runs_at_the_same_time_never_see_each_other() -> None:
    async with running() as suite, open_channel(suite.config.address("gateway")) as channel:
        stub, here, together = GatewayServiceStub(channel), 0, asyncio.Event()

        async def who_am_i() -> str:
            nonlocal here
            here += 1
            if here == 16:
                together.set()
            await asyncio.wait_for(together.wait(), 5)
            return current().identity.run_id

        suite.tool.execution = who_am_i
        ids = [f"run-{number}" for number in range(16)]
        answers = await asyncio.gather(
            *(_text(stub, metadata=(("x-sixhop-run-id", run_id),)) for run_id in ids)
        )

    assert answers == [(run_id, run_id) for run_id in ids]


async def _text(stub: Any, metadata: Any) -> tuple[str, str]:
    request = gateway_pb2.AskRequest(question=QUESTION)
    answer = await stub.Ask(request, timeout=10.0, metadata=metadata)
    return answer.run_id, answer.text
