"""Holds every hop to ending its work when its caller is gone, however the caller goes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field

import grpc
import pytest

from services.domain.agent import Answer
from services.domain.run import Run
from services.runtime.client import Dependency, open_channel
from services.runtime.outgoing import own_work
from sixhop.gateway.v1 import gateway_pb2
from sixhop.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from sixhop.model.v1 import model_pb2
from sixhop.model.v1.model_pb2_grpc import ModelServiceStub
from sixhop.type.v1.run_pb2 import Question
from tests.integration.runtime.suite import CLOCK, Suite, run_model, running, text
from tests.requirements import requirement
from tests.waiting import until

Events = AsyncIterator[model_pb2.GenerateResponse]
BOUND_S = 5
"""How long a test waits for what must happen; it fails then."""
STILL_LOOKS = 30
"""Who has written nothing more for so many looks in a row does not write."""
RUN = gateway_pb2.RunRequest(question=Question(text="hello"))


@dataclass(slots=True)
class Work:
    """Shows whether somebody still works."""

    began: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    written: int = 0

    async def waiting(self) -> Events:
        """Write one word, then wait."""
        try:
            yield text("one")
            self.began.set()
            await asyncio.Event().wait()
        finally:
            self.ended.set()

    async def flowing(self) -> Events:
        """Write and write, as fast as words come."""
        try:
            while True:
                self.began.set()
                self.written += 1
                yield text("word")
                await CLOCK.sleep(0.001)
        finally:
            self.ended.set()

    async def flooding(self) -> Events:
        """Write more than the other side's window holds, so that writing blocks."""
        try:
            while True:
                self.written += 1
                if self.written > 3:
                    self.began.set()
                yield text("x" * 1_000_000)
        finally:
            self.ended.set()

    async def stopped(self) -> None:
        """Wait until writing blocks: every buffer on the way is full, however large it has grown.

        Raises:
            TimeoutError: it goes on.
        """
        looks, written = 0, -1
        async with asyncio.timeout(BOUND_S):
            while looks < STILL_LOOKS:
                await CLOCK.sleep(0.005)
                looks = looks + 1 if written == self.written else 0
                written = self.written

    async def blocked(self) -> str:
        """Wait."""
        self.began.set()
        try:
            return str(await asyncio.Event().wait())
        finally:
            self.ended.set()


async def happened(event: asyncio.Event) -> None:
    """Wait for an event, but not for ever."""
    await asyncio.wait_for(event.wait(), BOUND_S)


@asynccontextmanager
async def model_called_by_domain(suite: Suite) -> AsyncIterator[Dependency]:
    """Be the domain hop, with a way to the model."""
    hop = suite.hops["domain"]
    async with hop.dependency("model") as model:
        with own_work("domain", "Test", 30.0, CLOCK):
            yield model


def generating(
    model: Dependency,
) -> AbstractAsyncContextManager[AsyncIterator[model_pb2.GenerateResponse]]:
    """Return one stream from the model."""
    return model.stream(ModelServiceStub(model.channel).Generate, model_pb2.GenerateRequest())


class LeftError(Exception):
    """Is the consumer's own."""


async def leave_by_break(model: Dependency) -> None:
    """Read one event and go."""
    async with generating(model) as events:
        async for _ in events:
            break


async def leave_by_error(model: Dependency) -> None:
    """Read one event and fail."""
    async with generating(model) as events:
        async for _ in events:
            raise LeftError


async def leave_unread(model: Dependency) -> None:
    """Read nothing."""
    async with generating(model):
        pass


async def leave_by_cancel(model: Dependency) -> None:
    """Be cancelled while waiting for an event."""

    async def consume() -> None:
        async with generating(model) as events:
            async for _ in events:
                waiting.set()

    waiting = asyncio.Event()
    consumer = asyncio.create_task(consume())
    await happened(waiting)
    consumer.cancel()
    await asyncio.wait({consumer}, timeout=BOUND_S)
    assert consumer.cancelled()


WAYS = [leave_by_break, leave_by_error, leave_unread, leave_by_cancel]


@requirement("stream:cancelled-when-left")
@pytest.mark.parametrize("leave", WAYS)
@pytest.mark.parametrize("kind", ["waiting", "flowing", "flooding"])
async def test_whoever_leaves_a_stream_ends_it_at_the_callee(
    kind: str, leave: Callable[[Dependency], Awaitable[None]]
) -> None:
    work = Work()
    async with running() as suite:
        suite.model.generation = getattr(work, kind)
        async with model_called_by_domain(suite) as model:
            with suppress(LeftError):
                await leave(model)

            await happened(work.ended)
            await until(suite.idle)


@requirement("stream:cancelled-when-left")
async def test_a_callee_that_is_blocked_because_nobody_reads_ends_too() -> None:
    work = Work()
    async with running() as suite:
        suite.model.generation = work.flooding
        async with model_called_by_domain(suite) as model:
            async with generating(model):
                await happened(work.began)
                await work.stopped()

            await happened(work.ended)
            await until(suite.idle)


@requirement("stream:cancelled-when-left")
@pytest.mark.parametrize("kind", ["waiting", "flowing"])
@pytest.mark.parametrize("how", ["cancel", "close", "deadline"])
async def test_when_the_client_is_gone_every_hop_ends_its_work(how: str, kind: str) -> None:
    work = Work()
    async with running() as suite:
        suite.agent = run_model
        suite.model.generation = getattr(work, kind)
        channel = open_channel(suite.config.address("gateway"))
        call = GatewayServiceStub(channel).Run(RUN, timeout=2.0 if how == "deadline" else 30.0)
        await call.read()
        await happened(work.began)

        if how == "cancel":
            call.cancel()
        elif how == "close":
            await channel.close()

        await happened(work.ended)
        await until(suite.idle)
        await channel.close()


@requirement("stream:cancelled-when-left")
@pytest.mark.parametrize("how", ["cancel", "close", "deadline"])
async def test_a_client_that_reads_nothing_and_goes_leaves_no_hop_blocked(how: str) -> None:
    """Every hop is suspended at its yield then: gRPC ends it from another task."""
    work = Work()
    async with running() as suite:
        suite.agent = run_model
        suite.model.generation = work.flooding
        channel = open_channel(suite.config.address("gateway"))
        call = GatewayServiceStub(channel).Run(RUN, timeout=2.0 if how == "deadline" else 30.0)
        await call.read()
        await happened(work.began)
        await CLOCK.sleep(0.3)
        assert not work.ended.is_set(), "the run was to be blocked"

        if how == "cancel":
            call.cancel()
        elif how == "close":
            await channel.close()

        await happened(work.ended)
        await until(suite.idle)
        await channel.close()


@requirement("stream:cancelled-when-left")
async def test_when_the_client_of_a_unary_call_is_gone_every_hop_ends_its_work() -> None:
    work = Work()
    async with running() as suite:
        suite.model.generation = work.waiting
        async with open_channel(suite.config.address("gateway")) as channel:
            request = gateway_pb2.AskRequest(question=Question(text="hello"))
            call = GatewayServiceStub(channel).Ask(request, timeout=30.0)
            waiting = asyncio.create_task(_result(call))
            await happened(work.began)

            waiting.cancel()

            await happened(work.ended)
            await until(suite.idle)
            await asyncio.wait({waiting})


@requirement("stream:cancelled-when-left")
async def test_a_tool_ends_its_work_when_the_run_is_over() -> None:
    work = Work()
    async with running() as suite:
        suite.tool.execution = work.blocked
        async with open_channel(suite.config.address("gateway")) as channel:
            call = GatewayServiceStub(channel).Run(RUN, timeout=30.0)
            await call.read()
            await happened(work.began)

            call.cancel()

            await happened(work.ended)
            await until(suite.idle)


@requirement("stream:cancelled-when-left")
async def test_an_agent_that_forgets_its_generation_leaves_nothing_behind() -> None:
    """The agent reads one word and answers; the model must not write on for nobody."""
    work = Work()

    async def short(run: Run) -> Answer:
        async with run.generate([]) as generation:
            async for words in generation:
                run.say(words)
                break
        return Answer(model="m")

    async with running() as suite:
        suite.agent = short
        suite.model.generation = work.flowing
        async with open_channel(suite.config.address("gateway")) as channel:
            events = [event async for event in GatewayServiceStub(channel).Run(RUN, timeout=30.0)]

        await happened(work.ended)
        await until(suite.idle)

    assert events[-1].event.WhichOneof("event") == "finished"


@requirement("grpc:traps")
async def test_grpc_itself_goes_on_streaming_to_who_has_left() -> None:
    """This is trap T5; when it is gone, the choke point's own cancel is only a belt."""
    work = Work()
    async with running() as suite:
        suite.model.generation = work.flowing
        async with open_channel(suite.config.address("model")) as channel:
            stub = ModelServiceStub(channel)
            async for _ in stub.Generate(model_pb2.GenerateRequest(), timeout=30.0):
                break

            written = work.written
            await until(lambda: work.written > written + 20)
            still_at_work = not work.ended.is_set()

        await happened(work.ended)
        await until(suite.idle)

    assert still_at_work


@requirement("grpc:traps")
async def test_a_deadline_does_not_travel_by_itself() -> None:
    """This is trap T1: who passes no timeout gives none."""
    async with running() as suite:

        async def forgetful() -> str:
            async with open_channel(suite.config.address("model")) as channel:
                stub = ModelServiceStub(channel)
                try:
                    async for _ in stub.Generate(model_pb2.GenerateRequest()):
                        pass
                except grpc.aio.AioRpcError as error:
                    return error.code().name
            return "OK"

        suite.tool.execution = forgetful
        async with open_channel(suite.config.address("gateway")) as channel:
            request = gateway_pb2.AskRequest(question=Question(text="hello"))
            answer = await GatewayServiceStub(channel).Ask(request, timeout=10.0)

    assert answer.text == "INVALID_ARGUMENT"


async def _result(call: Awaitable[gateway_pb2.AskResponse]) -> gateway_pb2.AskResponse:
    return await call
