"""Runs a planned suite: starts its processes in order, stops them in reverse."""

import asyncio
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from gateway.backoff import Backoff, BackoffConfig
from gateway.cli.parts import Plan, require_free_ports
from gateway.cli.problem import FailedError, RefusedError
from gateway.cli.supervisor import Announce, Child, last_problem
from services.runtime.clock import Clock
from services.runtime.topology import GATEWAY, LLM

STATE_VARIABLE = "XDG_STATE_HOME"
REFUSED = "REFUSED_TO_START"


class Suite:
    """Is a suite that runs, or is on its way."""

    def __init__(self, children: list[Child], clock: Clock) -> None:
        """Take the processes in the order of their start."""
        self._children = children
        self._clock = clock
        self._keepers: dict[asyncio.Task[None], Child] = {}

    async def start(self) -> None:
        """Start every process; return once all of them serve.

        Those behind the gateway start together, because none needs another to get ready. The
        gateway is last: whoever gets in finds the whole suite.

        Raises:
            RefusedError: a process refused its configuration.
            FailedError: a process did not serve in time.
        """
        inner = [child for child in self._children if child.part.name != GATEWAY]
        doors = [child for child in self._children if child.part.name == GATEWAY]
        for group in (inner, doors):
            keepers = {asyncio.create_task(child.keep_alive()): child for child in group}
            self._keepers |= keepers
            await self._wait_settled(keepers)

    async def wait(self, stop: asyncio.Event) -> None:
        """Return when asked to; raise what a defect of this program raised before that."""
        stopping = asyncio.ensure_future(stop.wait())
        try:
            done, _ = await asyncio.wait(
                {stopping, *self._keepers}, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            stopping.cancel()
        for task in done - {stopping}:
            task.result()

    async def stop(self) -> None:
        """Stop every process, the last one first; each is bounded by its drain time."""
        for task, child in reversed(self._keepers.items()):
            child.stop()
            await asyncio.wait({task})
        for task in self._keepers:
            task.result()

    def reload(self) -> None:
        """Have every hop read its configuration again; a language model has nothing to reload."""
        for child in self._children:
            if child.part.name != LLM:
                child.reload()

    def hurry(self) -> None:
        """Kill what is still there instead of waiting for calls in flight."""
        for child in self._children:
            child.stop()
            child.hurry()

    async def _wait_settled(self, keepers: Mapping[asyncio.Task[None], Child]) -> None:
        waits = {
            asyncio.create_task(child.wait_settled()): (child, keeper)
            for keeper, child in keepers.items()
        }
        began = self._clock.now()
        pending = set(waits)
        try:
            while pending:
                slowest = max((waits[wait][0] for wait in pending), key=_start_timeout_s)
                left_s = slowest.part.start_timeout_s - (self._clock.now() - began)
                done, pending = await asyncio.wait(
                    pending, timeout=max(0.0, left_s), return_when=asyncio.FIRST_COMPLETED
                )
                if not done:
                    raise _too_slow(slowest)
                for child, keeper in (waits[wait] for wait in done):
                    if keeper.done():
                        keeper.result()
                    if child.refusal:
                        raise _refused(child)
        finally:
            for wait in pending:
                wait.cancel()


@asynccontextmanager
async def suite_of(
    plan: Plan, *, logs: Path, clock: Clock, rng: random.Random, announce: Announce
) -> AsyncIterator[Suite]:
    """Give a suite that `start` starts; leaving the block stops all of it.

    Raises:
        RefusedError: a port is taken, or the logs cannot be written.
    """
    require_free_ports(plan.parts)
    empty_logs(plan, logs)
    children = [
        Child(
            part,
            environ=plan.environ,
            log=logs / f"{part.name}.log",
            clock=clock,
            backoff=Backoff(BackoffConfig(), rng),
            announce=announce,
        )
        for part in plan.parts
    ]
    suite = Suite(children, clock)
    try:
        yield suite
    finally:
        await suite.stop()


def empty_logs(plan: Plan, logs: Path) -> None:
    """Make an empty log file for every process.

    Raises:
        RefusedError: the folder or a file cannot be written.
    """
    try:
        # Log lines may quote questions.
        logs.mkdir(mode=0o700, parents=True, exist_ok=True)
        for part in plan.parts:
            (logs / f"{part.name}.log").write_bytes(b"")
    except OSError as error:
        raise RefusedError(
            f"logs cannot be written to {logs}: {error.strerror}; set {STATE_VARIABLE} to a "
            "folder that can be written",
            reason="LOGS_UNWRITABLE",
        ) from None


def log_folder(environ: Mapping[str, str], plan: Plan) -> Path:
    """Return where the processes of a suite log; two suites differ in their gateway's port."""
    state = environ.get(STATE_VARIABLE)
    base = Path(state) if state else Path.home() / ".local" / "state"
    return base / "sixhop" / plan.gateway.rpartition(":")[2]


def _start_timeout_s(child: Child) -> float:
    return child.part.start_timeout_s


def _refused(child: Child) -> RefusedError:
    name = child.part.name
    hint = "; `--no-llm` starts the suite without it" if name == LLM else ""
    return RefusedError(f"{name} refused to start: {child.refusal}{hint}", reason=REFUSED)


def _too_slow(child: Child) -> FailedError:
    said = last_problem(child.log, 0)
    return FailedError(
        f"{child.part.name} did not serve within {child.part.start_timeout_s:g} s"
        + (f": {said}" if said else "")
        + f"; its log: {child.log}",
        reason="NOT_SERVING",
    )
