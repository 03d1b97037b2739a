"""Watches every process of the suite for as long as somebody looks."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass

from gateway.backoff import Backoff
from gateway.state.view import NOT_SERVING, UNKNOWN, UNREACHABLE, HopView, heard, unheard
from services.runtime.background import OWN_TASK
from services.runtime.clock import Clock
from services.runtime.errors import LoadShedError
from services.runtime.telemetry import tell_defect
from sixhop.runtime.v1 import runtime_pb2

LINGER_S = 15.0
"""How long the watch goes on after the last look: a page that is loaded anew, or a balancer that
asks for the health every ten seconds, finds it going on."""
MAX_LOOKS = 64
"""So many may look at once; each costs a few messages a second."""
GLIMPSE_S = 0.5
"""How long somebody who asks once waits for processes that were not asked yet."""
RETRY_AFTER_S = 5.0

States = Callable[[], AsyncGenerator[runtime_pb2.GetSnapshotResponse, None]]
"""Yields the states of a process as they change; ends when it drains."""


class UnheardError(Exception):
    """Says that a process tells nothing, and how it does as far as that shows."""

    def __init__(self, state: str, detail: str) -> None:
        """Take `silent`, `unreachable` or `not_serving`, and why."""
        super().__init__(detail)
        self.state = state
        self.detail = detail


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """Is one process of the suite."""

    hop: str
    address: str
    states: States
    replica: bool = False
    """Whether it is one of several of its hop."""


class Look:
    """Is one who looks. Nothing is kept for a slow one: it is shown how things are by then."""

    def __init__(self, count: int) -> None:
        """Take how many processes there are; all of them are news."""
        self._news = set(range(count))
        self._wake = asyncio.Event()
        self._wake.set()
        self._over = False

    def tell(self, number: int) -> None:
        """Note that a process has told something."""
        self._news.add(number)
        self._wake.set()

    def end(self) -> None:
        """Note that nothing more will come."""
        self._over = True
        self._wake.set()

    async def next(self) -> list[int] | None:
        """Return the numbers of the processes that have news, once there are any; None at the end.

        The caller bounds nothing: news comes with every state, or the look is ended.
        """
        await self._wake.wait()
        if self._over:
            return None
        self._wake.clear()
        news, self._news = sorted(self._news), set()
        return news


class Lookout:
    """Knows how the processes do, from the first look until some time after the last."""

    def __init__(
        self, processes: Sequence[Process], clock: Clock, backoff: Callable[[], Backoff]
    ) -> None:
        """Take whom to watch.

        Args:
            processes: from the client inwards.
            clock: the clock.
            backoff: makes what says how soon a process that is not heard is asked again.
        """
        self._processes = processes
        self._clock = clock
        self._backoff = backoff
        self._looks: set[Look] = set()
        self._wanted = asyncio.Event()
        self._all_known = asyncio.Event()
        self._looked_at = -LINGER_S
        self.views: list[HopView] = []
        """How each process does, as far as it is known."""
        self._forget()

    @asynccontextmanager
    async def looking(self) -> AsyncIterator[Look]:
        """Look while the block runs.

        Raises:
            LoadShedError: enough look already.
        """
        if len(self._looks) >= MAX_LOOKS:
            raise LoadShedError(
                f"{len(self._looks)} look at the state already; close one",
                cause="watchers",
                retry_after_s=RETRY_AFTER_S,
            )
        look = Look(len(self._processes))
        self._looks.add(look)
        self._want()
        try:
            yield look
        finally:
            self._looks.discard(look)
            self._looked_at = self._clock.now()

    async def glimpse(self) -> list[HopView]:
        """Return how each process does; those that do not tell in time are unknown."""
        self._want()
        try:
            async with asyncio.timeout(GLIMPSE_S):
                await self._all_known.wait()
        except TimeoutError:
            pass
        return list(self.views)

    def end(self) -> None:
        """End every look: this process drains."""
        for look in self._looks:
            look.end()

    async def run(self) -> None:
        """Watch whenever somebody looks, for ever."""
        while True:
            await self._wanted.wait()
            async with asyncio.TaskGroup() as group:
                following = [
                    group.create_task(self._follow(number), name=f"{OWN_TASK}lookout")
                    for number in range(len(self.views))
                ]
                await self._until_nobody_looks()
                for task in following:
                    task.cancel()
            self._forget()

    def _want(self) -> None:
        self._looked_at = self._clock.now()
        self._wanted.set()

    async def _until_nobody_looks(self) -> None:
        while True:
            left_s = self._looked_at + LINGER_S - self._clock.now()
            if not self._looks and left_s <= 0:
                self._wanted.clear()
                return
            await self._clock.sleep(LINGER_S if self._looks else left_s)

    def _forget(self) -> None:
        self._all_known.clear()
        self.views = [
            unheard(each.hop, each.address, UNKNOWN, "", replica=each.replica)
            for each in self._processes
        ]

    async def _follow(self, number: int) -> None:
        """Take what a process tells, and ask again when it tells nothing, for ever."""
        process, backoff = self._processes[number], self._backoff()
        while True:
            began = self._clock.now()
            state, detail = await self._hear(number)
            view = unheard(process.hop, process.address, state, detail, replica=process.replica)
            self._tell(number, view)
            await self._clock.sleep(backoff.pause_s(self._clock.now() - began))

    async def _hear(self, number: int) -> tuple[str, str]:
        """Take what a process tells until it is heard no more; return how it does then."""
        process = self._processes[number]
        try:
            async with aclosing(process.states()) as states:
                async for told in states:
                    view = heard(process.hop, process.address, told, replica=process.replica)
                    self._tell(number, view)
        except UnheardError as error:
            return error.state, error.detail
        except Exception as error:  # what one process sends must not end the watch of the others
            error.add_note(f"while {process.hop} was watched")
            tell_defect(error)
            return UNREACHABLE, "what it tells cannot be read"
        return NOT_SERVING, "it drains"

    def _tell(self, number: int, view: HopView) -> None:
        self.views[number] = view
        if all(each["state"] != UNKNOWN for each in self.views):
            self._all_known.set()
        for look in self._looks:
            look.tell(number)
