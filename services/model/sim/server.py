"""Serves a simulated provider over sockets, and refuses connections when it is told to."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import orjson

from services.model.sim.answering import answer
from services.model.sim.asking import BadRequestError, read_ask
from services.model.sim.config import SimSettings
from services.model.sim.control import control
from services.model.sim.dialect import error_body
from services.model.sim.door import BadHttpError, Door, Request, read_request
from services.model.sim.faults import UnknownFaultError
from services.model.sim.listening import Listener
from services.model.sim.log import CLIENT_LEFT, COMPLETE, DOWN, NOT_READ, STOPPED, Record
from services.model.sim.script import Script, Step, Timeline, load_script, play
from services.model.sim.wire import Wire
from services.model.sim.world import World
from services.runtime.clock import Clock

COMPLETIONS = ("/v1/chat/completions", "/chat/completions", "/beta/chat/completions")
STOP_TIMEOUT_S = 5.0


@dataclass(slots=True, eq=False)
class _Served:
    """Is one connection with what serves it."""

    number: int
    wire: Wire
    task: "asyncio.Task[None]"
    record: Record | None = None
    """The request that is being answered."""
    notice_s: float = 0.0
    """How long work on it goes on after its client left."""
    leaving: asyncio.TimerHandle | None = None


class Simulator:
    """Is a simulated provider that listens."""

    def __init__(self, settings: SimSettings, clock: Clock) -> None:
        """Take the settings; `start` begins to listen.

        Raises:
            UnknownFaultError: a rule of the settings cannot be read.
            BadScriptError: the script of the settings cannot be read.
        """
        script = Script() if settings.script is None else load_script(settings.script)
        self.world = World(settings, clock)
        self._first_script = script
        self._clock = clock
        self._numbers = itertools.count(1)
        self._served: dict[Door, _Served] = {}
        self._listener = Listener(
            settings.host, lambda: Door(self, steering=False), clock, refusing=self._refusing
        )
        self._control = Listener(settings.host, lambda: Door(self, steering=True), clock)
        self._player: asyncio.Task[None] | None = None
        self._refuses_until = 0.0

    @property
    def port(self) -> int:
        """Return the port of the provider, once it serves."""
        return self._listener.port

    @property
    def control_port(self) -> int:
        """Return the port that stays open while the other one refuses."""
        return self._control.port

    @property
    def base_url(self) -> str:
        """Return what a client takes as its provider's base URL."""
        return f"http://{_in_url(self.world.settings.host)}:{self.port}/v1"

    @property
    def control_url(self) -> str:
        """Return where it can be steered also while it refuses connections."""
        return f"http://{_in_url(self.world.settings.host)}:{self.control_port}"

    async def start(self) -> None:
        """Listen, and begin the script of the settings.

        Raises:
            OSError: a port cannot be had.
        """
        await self._listener.open(self.world.settings.port)
        await self._control.open(self.world.settings.control_port)
        self.play(self._first_script)

    async def stop(self) -> None:
        """End every connection, and stop to listen."""
        await self._listener.stop()
        await self._control.stop()
        doors = list(self._served)
        tasks = [served.task for served in self._served.values()]
        tasks += [self._player] if self._player is not None else []
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=STOP_TIMEOUT_S)
        for door in doors:
            door.writer.transport.abort()

    def play(self, script: Script) -> None:
        """Put a script in force instead of the one before."""
        self.world.timeline = Timeline(script, self._clock)
        if self._player is not None:
            self._player.cancel()
        self._player = None
        self._apply(self.world.timeline.current())
        if not self.world.timeline.waiting:
            self._play()

    def reset(self) -> None:
        """Begin again: forget what was, and play the first script from its start."""
        self._refuses_until = 0.0
        self.world.reset()
        self.play(self._first_script)

    def refuse(self, length_s: float) -> None:
        """Refuse connections for so long; open ones go on."""
        if length_s > 0:
            self._refuses_until = self._clock.now() + length_s
            self._listener.follow()

    def opened(self, door: Door) -> None:
        """Begin to serve a new connection."""
        number = next(self._numbers)
        timeout_s = self.world.settings.write_timeout_s
        wire = Wire(door.writer, self._clock, write_timeout_s=timeout_s)
        task = asyncio.create_task(self._serve(door))
        self._served[door] = _Served(number, wire, task)
        self.world.log.connections.add(number)
        task.add_done_callback(lambda _: self._closed(door))

    def left(self, door: Door) -> None:
        """Note that a client has left, and stop what is done for it, now or a little later."""
        served = self._served.get(door)
        if served is None or served.wire.gone:
            return
        served.wire.gone = True
        if served.record is None or served.record.ended:
            served.task.cancel()
            return
        if served.wire.stuck:
            self.world.log.end(served.record, NOT_READ)
        self.world.log.leave(served.record)
        if served.notice_s > 0:
            loop = asyncio.get_running_loop()
            served.leaving = loop.call_later(served.notice_s, served.task.cancel)
        else:
            served.task.cancel()

    def _closed(self, door: Door) -> None:
        served = self._served.pop(door)
        if served.leaving is not None:
            served.leaving.cancel()
        if served.record is not None:
            self.world.log.end(served.record, CLIENT_LEFT if served.wire.gone else STOPPED)
        self.world.log.close(served.number)
        if not served.task.cancelled():
            # A defect of ours must be seen, and not look like a fault that was asked for.
            served.task.result()

    async def _serve(self, door: Door) -> None:
        served = self._served[door]
        idle_s = self.world.settings.idle_timeout_s
        try:
            while served.wire.keep_alive:
                request = await read_request(door.reader, door.writer, idle_timeout_s=idle_s)
                if request is None:
                    break
                served.wire.begun = False
                await self._answer(request, served)
                if served.wire.gone or request.headers.get("connection", "").lower() == "close":
                    break
        except BadHttpError as error:
            await _send_json(served.wire, error.status, _refused(error.message))
        except asyncio.CancelledError:
            if not served.wire.gone:
                raise
        finally:
            # It flushes what was written; after a reset there is nothing left.
            door.writer.transport.close()

    async def _answer(self, request: Request, served: _Served) -> None:
        parts = urlsplit(request.target)
        if request.method != "POST" or parts.path not in COMPLETIONS:
            status, document = await control(self, request)
            await _send_json(served.wire, status, document)
            return
        self._touch()
        try:
            ask = read_ask(request.body)
            arrival = self.world.arrive(request, ask, served.number)
        except (BadRequestError, UnknownFaultError) as error:
            self.world.reject(request, served.number)
            await _send_json(served.wire, 400, error_body("openai", 400, str(error)))
            return
        served.record, fault = arrival.record, arrival.choice.rule.fault
        late_s = self.world.settings.departure_notice_s
        served.notice_s = fault.notice_s if fault.notice_s >= 0 else late_s
        self.refuse(fault.refuse_s)
        authorization = request.headers.get("authorization", "")
        exchange = self.world.exchange(ask, arrival, served.wire, authorization)
        await answer(exchange)
        if arrival.record.ended == COMPLETE:
            self.world.answered(self._clock.now() - exchange.arrived)

    def _touch(self) -> None:
        """Begin the time of a script that waits for a request."""
        if self.world.timeline.waiting:
            self.world.timeline.touch()
            self._play()

    def _play(self) -> None:
        self._player = asyncio.create_task(play(self.world.timeline, self._apply, self._clock))

    def _apply(self, step: Step) -> None:
        self.world.apply(step)
        self._listener.follow()
        if step.down:
            for door, served in list(self._served.items()):
                if door.steering:
                    continue
                if served.record is not None:
                    self.world.log.end(served.record, DOWN)
                served.wire.reset()

    def _refusing(self) -> bool:
        step = self.world.step
        return step.refusing or step.down or self._clock.now() < self._refuses_until


@asynccontextmanager
async def serving(settings: SimSettings, clock: Clock) -> AsyncIterator[Simulator]:
    """Serve while the block runs.

    Raises:
        OSError: a port cannot be had.
    """
    simulator = Simulator(settings, clock)
    try:
        await simulator.start()
        yield simulator
    finally:
        await simulator.stop()


def _refused(message: str) -> dict[str, Any]:
    return error_body("openai", 400, message)


async def _send_json(wire: Wire, status: int, document: Any) -> None:
    body = orjson.dumps(document, default=str)
    await wire.head(status, {"content-type": "application/json"}, length=len(body))
    await wire.send(body)


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
