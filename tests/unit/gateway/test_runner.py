"""Tests how runs are followed, whether their events are given on or gathered."""

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, cast

import pytest

from gateway.config import GatewaySettings
from gateway.runner import Runner
from gateway.runs.record import Status
from services.runtime.call import CURRENT, Inbound
from services.runtime.client import Dependency
from services.runtime.clock import ManualClock
from services.runtime.errors import DependencyFailedError, PermissionDeniedError, SixhopError
from services.runtime.tenants import TenantLimits
from sixhop.gateway.v1 import gateway_pb2
from sixhop.routing.v1 import routing_pb2
from sixhop.type.v1 import chat_pb2, run_pb2, usage_pb2
from tests.requirements import requirement
from tests.unit.gateway.runs.made import Gateway, finished, kept, restarted, text, words_of

QUESTION = run_pb2.Question(text="Why?")
CALL = run_pb2.RunEvent(tool_call=chat_pb2.ToolCall(id="a", name="sql"))
DEGRADED = run_pb2.RunEvent(degraded=run_pb2.Degraded(mechanism="cache", part="answer"))
ROUTED = run_pb2.RunEvent(routed=run_pb2.RunRouted(agent="chat"))
END = finished(usage=usage_pb2.Usage(input_token_count=3, output_token_count=4))


class Routing:
    """Says of every run what it is told to."""

    def __init__(self, says: Sequence[run_pb2.RunEvent]) -> None:
        """Take the events."""
        self.channel = self
        self.asked: list[routing_pb2.RouteRequest] = []
        self.open = 0
        self._says = says

    def unary_unary(self, *_: object, **__: object) -> None:
        """Be a channel."""

    unary_stream = unary_unary

    @asynccontextmanager
    async def stream(
        self, rpc: object, asked: routing_pb2.RouteRequest
    ) -> AsyncIterator[AsyncIterator[routing_pb2.RouteResponse]]:
        """Answer."""
        self.asked.append(asked)
        self.open += 1
        try:
            yield self._responses()
        finally:
            self.open -= 1

    async def _responses(self) -> AsyncIterator[routing_pb2.RouteResponse]:
        for number, event in enumerate(self._says, 1):
            yield routing_pb2.RouteResponse(sequence=number, event=event)


class House:
    """Is a gateway around one run."""

    def __init__(self, clock: ManualClock, *says: run_pb2.RunEvent, **limits: Any) -> None:
        """Take what routing says, and the limits of who asks."""
        self.gateway = Gateway(clock)
        self.inbound: Inbound = self.gateway.arrive()
        self.inbound.limits = TenantLimits(**limits)
        self.routing = Routing(says)
        routing = cast(Dependency, self.routing)
        self._runner = Runner(routing, GatewaySettings(), self.gateway.book)
        CURRENT.set(self.inbound)

    async def ask(self) -> gateway_pb2.AskResponse:
        """Ask for a whole answer."""
        return await self._runner.ask(gateway_pb2.AskRequest(question=QUESTION))

    async def stream(self) -> list[str | None]:
        """Ask for events, and return their kinds."""
        request = gateway_pb2.RunRequest(question=QUESTION, delivery=run_pb2.DELIVERY_LIVE)
        async with aclosing(self._runner.events(request)) as events:
            return [event.WhichOneof("event") async for event in events]

    async def lead(self, *, whole: bool) -> None:
        """Ask either way."""
        await (self.ask() if whole else self.stream())


@requirement("runs:every-door")
async def test_a_whole_answer_holds_what_stands_at_the_end(clock: ManualClock) -> None:
    said = (ROUTED, text("Wrong"), CALL, restarted(), text("Ri"), text("ght"), DEGRADED, CALL, END)
    house = House(clock, *said)

    answer = await house.ask()

    assert (answer.run_id, answer.text) == ("r1", "Right")
    assert (answer.agent, answer.model) == ("chat", "m")
    assert [each.id for each in answer.tool_calls] == ["a"]
    assert [each.mechanism for each in answer.degradations] == ["cache"]
    assert house.routing.asked[0].delivery == run_pb2.DELIVERY_UNSPECIFIED


@requirement("runs:every-door")
async def test_a_stream_gives_every_event_in_its_turn(clock: ManualClock) -> None:
    house = House(clock, ROUTED, text("So."), END)

    assert await house.stream() == ["accepted", "routed", "text_delta", "finished"]
    assert house.routing.asked[0].delivery == run_pb2.DELIVERY_LIVE


@requirement("runs:every-door")
@pytest.mark.parametrize("whole", [True, False], ids=["whole", "stream"])
async def test_all_of_a_run_is_kept_and_counted(clock: ManualClock, whole: bool) -> None:
    house = House(clock, ROUTED, text("So"), text("."), END)

    await house.lead(whole=whole)

    run = kept(house.inbound)
    assert words_of(run) == [(1, None), (2, None), (3, "So"), (4, "."), (5, None)]
    assert (run.record.agent, run.record.status) == ("chat", Status.OK)
    assert house.inbound.token_count == 7


@requirement("runs:one-end")
@pytest.mark.parametrize("whole", [True, False], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ((text("So."),), "ended without its last event"),
        ((text("So."), END, text("More")), "went on after its last event"),
        ((text("So."), END, END), "went on after its last event"),
    ],
)
async def test_a_run_that_ends_as_none_may_has_failed(
    clock: ManualClock, said: Sequence[run_pb2.RunEvent], problem: str, whole: bool
) -> None:
    house = House(clock, *said)

    with pytest.raises(DependencyFailedError, match=problem) as caught:
        await house.lead(whole=whole)

    assert caught.value.origin is not None
    assert caught.value.origin.reason == "TRUNCATED"
    assert house.routing.open == 0
    # Nobody is told of an end that was none.
    assert words_of(kept(house.inbound)) == [(1, None), (2, "So.")]


@requirement("tenants:tokens-are-a-debt")
@pytest.mark.parametrize("whole", [True, False], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("said", "token_count"),
    [
        ((ROUTED,), 0),
        ((text("x" * 300), restarted(), text("x" * 96)), 100),
        ((text("x" * 396), END, text("x" * 96)), 7),
    ],
    ids=["nothing", "until-then", "by-itself"],
)
async def test_a_run_that_fails_costs_what_it_has_said(
    clock: ManualClock, said: Sequence[run_pb2.RunEvent], token_count: int, whole: bool
) -> None:
    house = House(clock, *said)

    with pytest.raises(SixhopError):
        await house.lead(whole=whole)

    assert len(QUESTION.text) == 4
    assert house.inbound.token_count == token_count


@requirement("tenants:agents-and-tools")
@pytest.mark.parametrize("whole", [True, False], ids=["whole", "stream"])
async def test_an_agent_that_the_tenant_may_not_ask_does_not_answer(
    clock: ManualClock, whole: bool
) -> None:
    house = House(clock, ROUTED, text("So."), END, agents=frozenset({"orders"}))

    with pytest.raises(PermissionDeniedError):
        await house.lead(whole=whole)

    assert list(house.routing.asked[0].allowed_agents.names) == ["orders"]
    assert not house.routing.asked[0].HasField("allowed_tools")
    assert words_of(kept(house.inbound)) == [(1, None)]
