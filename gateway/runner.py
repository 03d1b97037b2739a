"""Makes runs, for every door of the gateway."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from gateway.allowance import check_agent, check_allowance
from gateway.config import GatewaySettings
from gateway.question import check_question
from gateway.runs.book import RunBook
from gateway.runs.event_json import ACCEPTED, FINISHED, ROUTED, TEXT, UNKNOWN
from gateway.spending import Spending
from services.runtime.call import CURRENT, Callee, Inbound
from services.runtime.client import Dependency
from services.runtime.durations import to_duration
from services.runtime.errors import DependencyFailedError, Origin
from services.runtime.tenants import UNLIMITED
from services.runtime.topology import ROUTING
from sixhop.gateway.v1 import gateway_pb2
from sixhop.routing.v1 import routing_pb2
from sixhop.routing.v1.routing_pb2_grpc import RoutingServiceStub
from sixhop.type.v1 import run_pb2

_LISTING = Callee(key=f"{ROUTING}/agents", idempotent=True)
"""Asking who is there, apart from runs: each has a breaker of its own."""


class Runner:
    """Sends questions to routing, and gives what comes back."""

    def __init__(self, routing: Dependency, settings: GatewaySettings, book: RunBook) -> None:
        """Take the way to routing, the limits of the doors, and where runs are kept."""
        self._routing = routing
        self._stub = RoutingServiceStub(routing.channel)
        self._settings = settings
        self._book = book

    async def run(
        self, request: gateway_pb2.RunRequest
    ) -> AsyncGenerator[gateway_pb2.RunResponse, None]:
        """Run a question and yield what happens, numbered; raises as `events` does."""
        sequence = 0
        async with aclosing(self.events(request, request.delivery)) as events:
            async for event in events:
                sequence += 1
                yield gateway_pb2.RunResponse(sequence=sequence, event=event)

    async def ask(self, request: gateway_pb2.AskRequest) -> gateway_pb2.AskResponse:
        """Run a question and return the whole answer; raises as `events` does."""
        answer = gateway_pb2.AskResponse(run_id=CURRENT.get().identity.run_id)
        texts: list[str] = []
        # Nobody sees a part of it, so that text may be taken back.
        events = self.events(request, run_pb2.DELIVERY_UNSPECIFIED, texts=texts)
        async with aclosing(events):
            async for event in events:
                kind = event.WhichOneof("event")
                if kind == "tool_call":
                    answer.tool_calls.append(event.tool_call)
                elif kind == "restarted":
                    texts.clear()
                    del answer.tool_calls[:]
                elif kind == "degraded":
                    answer.degradations.append(event.degraded)
                elif kind == "finished":
                    _fill(answer, event.finished)
        answer.text = "".join(texts)
        return answer

    async def events(
        self,
        request: gateway_pb2.RunRequest | gateway_pb2.AskRequest,
        delivery: "run_pb2.Delivery.ValueType",
        let_in: Callable[[], None] = lambda: None,
        texts: list[str] | None = None,
    ) -> AsyncGenerator[run_pb2.RunEvent, None]:
        """Run a question and yield what happens.

        Args:
            request: the question.
            delivery: how its text may come.
            let_in: may refuse it before it begins.
            texts: takes the pieces of text, which then are not yielded.

        Raises:
            SixhopError: it is refused, or the run failed.
        """
        inbound = CURRENT.get()
        let_in()
        yield self._accept(inbound, request)
        spent = Spending(inbound, request.question)
        asked = _asked(inbound, request, delivery)
        last: run_pb2.RunEvent | None = None
        try:
            async with self._routing.stream(self._stub.Route, asked) as responses:
                async for response in responses:
                    if last is not None:
                        raise _incomplete("went on after its last event")
                    event = response.event
                    kind = event.WhichOneof("event") or UNKNOWN
                    if kind == TEXT:
                        # By far the most: what is read of them is read once.
                        text = event.text_delta.text
                        spent.written_chars += len(text)
                        self._book.tell_text(inbound, text)
                        if texts is None:
                            yield event
                        else:
                            texts.append(text)
                        continue
                    if kind == ROUTED:
                        # Routing has been told; one that is older than this rule did not listen.
                        check_agent(inbound, event.routed.agent)
                    if kind == FINISHED:
                        # Kept until the stream has ended well: a run that fails has no last event.
                        last = event
                        spent.see_end(event.finished)
                    else:
                        self._book.tell(inbound, kind, event)
                        yield event
        finally:
            spent.settle()
        if last is None:
            raise _incomplete("ended without its last event")
        self._book.tell(inbound, FINISHED, last)
        yield last

    async def agents(self) -> routing_pb2.ListAgentsResponse:
        """Return the agents that the caller may ask.

        Raises:
            SixhopError: routing failed, or does not know them yet.
        """
        inbound = CURRENT.get()
        listed = await self._routing.unary(
            self._stub.ListAgents, routing_pb2.ListAgentsRequest(), callee=_LISTING
        )
        if inbound.limits is None or inbound.limits.agents is None:
            return listed
        allowed = [each for each in listed.agents if each.name in inbound.limits.agents]
        return routing_pb2.ListAgentsResponse(agents=allowed)

    def _accept(
        self, inbound: Inbound, request: gateway_pb2.RunRequest | gateway_pb2.AskRequest
    ) -> run_pb2.RunEvent:
        """Begin a run, and return its first event.

        Raises:
            InvalidArgumentError: no agent could answer the question, or it is too large.
            PermissionDeniedError: its tenant may not ask this agent.
        """
        self._book.begin(inbound, request.question, request.agent)
        check_question(request.question, self._settings)
        check_allowance(inbound, request)
        accepted = run_pb2.RunAccepted(
            run_id=inbound.identity.run_id,
            budget_duration=to_duration(inbound.time_remaining_on_arrival_s),
        )
        event = run_pb2.RunEvent(accepted=accepted)
        self._book.tell(inbound, ACCEPTED, event)
        return event


def _asked(
    inbound: Inbound,
    request: gateway_pb2.RunRequest | gateway_pb2.AskRequest,
    delivery: "run_pb2.Delivery.ValueType",
) -> routing_pb2.RouteRequest:
    """Return what routing is asked for: the question, and what its tenant may use."""
    limits = inbound.limits or UNLIMITED
    return routing_pb2.RouteRequest(
        question=request.question,
        agent=request.agent,
        delivery=delivery,
        allowed_agents=_names(limits.agents),
        allowed_tools=_names(limits.tools),
    )


def _names(allowed: frozenset[str] | None) -> run_pb2.AllowedNames | None:
    return None if allowed is None else run_pb2.AllowedNames(names=sorted(allowed))


def _fill(answer: gateway_pb2.AskResponse, finished: run_pb2.RunFinished) -> None:
    answer.agent = finished.agent
    answer.model = finished.model
    answer.usage.CopyFrom(finished.usage)
    answer.artifacts.extend(finished.artifacts)
    answer.missing_parts.extend(finished.missing_parts)
    answer.sources.extend(finished.sources)
    answer.finish_reason = finished.finish_reason


def _incomplete(how: str) -> DependencyFailedError:
    return DependencyFailedError(
        ROUTING,
        f"the run {how}; the answer is not complete",
        cause="truncated",
        origin=Origin(ROUTING, code="OK", reason="TRUNCATED"),
    )
