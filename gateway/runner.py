"""Makes runs, for every door of the gateway."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from gateway.allowance import check_agent, check_allowance, prompt_chars
from gateway.config import GatewaySettings
from gateway.question import check_question
from gateway.runs.book import RunBook
from gateway.runs.event_json import (
    ACCEPTED,
    DEGRADED,
    FINISHED,
    RESTARTED,
    ROUTED,
    TEXT,
    TOOL_CALL,
    UNKNOWN,
)
from gateway.runs.memory import RunMemory
from gateway.runs.run import Run
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

CHARS_PER_TOKEN = 4
"""Of English; other languages have fewer, and their runs are charged less until they say more."""
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
        async with aclosing(self.events(request)) as events:
            async for event in events:
                sequence += 1
                yield gateway_pb2.RunResponse(sequence=sequence, event=event)

    async def ask(self, request: gateway_pb2.AskRequest) -> gateway_pb2.AskResponse:
        """Run a question and return the whole answer; raises as `events` does."""
        inbound = CURRENT.get()
        self._accept(inbound, request)
        course = _Course(self._book.memory, inbound, request.question)
        # Nobody sees a part of it, so that text may be taken back.
        asked = _asked(inbound, request, run_pb2.DELIVERY_UNSPECIFIED)
        answer = gateway_pb2.AskResponse(run_id=inbound.identity.run_id)
        texts: list[str] = []
        try:
            # Not by way of `events`: it would be woken for each of them as well.
            async with self._routing.stream(self._stub.Route, asked) as responses:
                async for response in responses:
                    event = response.event
                    kind = course.take(event)
                    if kind == TEXT:
                        texts.append(course.text)
                    elif kind == TOOL_CALL:
                        answer.tool_calls.append(event.tool_call)
                    elif kind == RESTARTED:
                        texts.clear()
                        del answer.tool_calls[:]
                    elif kind == DEGRADED:
                        answer.degradations.append(event.degraded)
        finally:
            course.settle()
        _fill(answer, course.end().finished)
        answer.text = "".join(texts)
        return answer

    async def events(
        self, request: gateway_pb2.RunRequest, let_in: Callable[[], None] | None = None
    ) -> AsyncGenerator[run_pb2.RunEvent, None]:
        """Run a question and yield what happens.

        Args:
            request: the question.
            let_in: may refuse it before it begins.

        Raises:
            SixhopError: it is refused, or the run failed.
        """
        inbound = CURRENT.get()
        if let_in is not None:
            let_in()
        yield self._accept(inbound, request)
        course = _Course(self._book.memory, inbound, request.question)
        asked = _asked(inbound, request, request.delivery)
        try:
            async with self._routing.stream(self._stub.Route, asked) as responses:
                async for response in responses:
                    event = response.event
                    if course.take(event) != FINISHED:
                        yield event
        finally:
            course.settle()
        yield course.end()

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
        if inbound.kept is not None:
            self._book.memory.take(inbound.kept, ACCEPTED, event)
        return event


class _Course:
    """Follows one run: tells it to whoever keeps it, counts it, and sees that it ends well.

    A run says only at its end how many tokens it has used. One that is cancelled or fails says
    nothing, and has cost as much: once it has begun to answer, it counts by its characters.
    """

    def __init__(self, memory: RunMemory, inbound: Inbound, question: run_pb2.Question) -> None:
        """Take where runs are kept, the call of one that has begun, and its question."""
        self._memory = memory
        self._inbound = inbound
        self._run: Run | None = inbound.kept
        self._question = question
        self.text = ""
        """The piece of text that was taken last."""
        self._written_chars = 0
        self._last: run_pb2.RunEvent | None = None

    def take(self, event: run_pb2.RunEvent) -> str:
        """Take an event of the run, and return its kind.

        Raises:
            DependencyFailedError: the run has ended already.
            PermissionDeniedError: its tenant may not ask the agent that shall answer.
        """
        if self._last is not None:
            raise _incomplete("went on after its last event")
        kind = event.WhichOneof("event") or UNKNOWN
        if kind == TEXT:
            self.text = text = event.text_delta.text
            self._written_chars += len(text)
            if self._run is not None:
                self._memory.take_text(self._run, text)
        elif kind == FINISHED:
            # Kept until the stream has ended well: a run that fails has no last event.
            self._last = event
            usage = event.finished.usage
            self._inbound.token_count = usage.input_token_count + usage.output_token_count
        else:
            if kind == ROUTED:
                # Routing has been told; one that is older than this rule did not listen.
                check_agent(self._inbound, event.routed.agent)
            if self._run is not None:
                self._memory.take(self._run, kind, event)
        return kind

    def settle(self) -> None:
        """Note what a run has used that has begun to answer, unless it has said so itself."""
        if self._last is None and self._written_chars:
            chars = prompt_chars(self._question) + self._written_chars
            self._inbound.token_count = chars // CHARS_PER_TOKEN

    def end(self) -> run_pb2.RunEvent:
        """Return the last event of the run, whose stream has ended well.

        Raises:
            DependencyFailedError: there was none.
        """
        if self._last is None:
            raise _incomplete("ended without its last event")
        if self._run is not None:
            self._memory.take(self._run, FINISHED, self._last)
        return self._last


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
        allowed_agents=None if limits.agents is None else _names(limits.agents),
        allowed_tools=None if limits.tools is None else _names(limits.tools),
    )


def _names(allowed: frozenset[str]) -> run_pb2.AllowedNames:
    return run_pb2.AllowedNames(names=sorted(allowed))


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
