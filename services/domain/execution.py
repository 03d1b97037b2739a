"""Runs one agent as a task of its own, and gives its events with a heartbeat."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from services.domain.agent import Agent, Answer
from services.domain.events import Event
from services.domain.run import Run
from services.runtime.heartbeat import HeartbeatSettings

STOP_TIMEOUT_S = 1.0
"""How long a cancelled agent may take to clean up."""


@dataclass(frozen=True, slots=True)
class Silence:
    """Says that the agent lives and had nothing to say for a while."""

    silence_s: float


class Execution:
    """Is one agent at work."""

    def __init__(
        self, run: Run, task: "asyncio.Task[Answer]", heartbeat: HeartbeatSettings
    ) -> None:
        """Take the run, the task that works on it, and when silence is to be told."""
        self._run = run
        self._heartbeat = heartbeat
        self._task = task
        task.add_done_callback(lambda _: run.events.wake())

    async def events(self) -> AsyncIterator[Event | Silence]:
        """Yield what the agent says until it has ended; silence becomes a heartbeat."""
        silence_s = 0.0
        while True:
            event = self._run.events.take()
            if event is not None:
                silence_s = 0.0
                yield event
            elif self._task.done():
                return
            else:
                interval_s = self._heartbeat.interval_near_s(self._run.time_remaining_s())
                if not await self._run.events.wait(interval_s):
                    silence_s += interval_s
                    yield Silence(silence_s)

    def answer(self) -> Answer:
        """Return what the agent returned, or raise what it raised. Only after the events."""
        return self._task.result()


@asynccontextmanager
async def executing(
    agent: Agent, run: Run, heartbeat: HeartbeatSettings
) -> AsyncIterator[Execution]:
    """Run an agent while the block lasts; leaving it stops the agent."""
    task = asyncio.ensure_future(_answer(agent, run))
    try:
        yield Execution(run, task, heartbeat)
    finally:
        task.cancel()
        # Waited for and not awaited: the end of a cancelled task must not become ours.
        await asyncio.wait({task}, timeout=STOP_TIMEOUT_S)
        if task.done() and not task.cancelled():
            # Looked at, so that asyncio does not tell of an error whose reader has gone.
            task.exception()


async def _answer(agent: Agent, run: Run) -> Answer:
    answer = await agent.run(run)
    run.release()
    return answer
