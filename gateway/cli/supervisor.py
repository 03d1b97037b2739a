"""Keeps one process of the suite alive until it is told to stop."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Never

from gateway.backoff import Backoff
from gateway.cli import child
from gateway.cli.parts import Part
from gateway.cli.probe import wait_until_serving
from gateway.cli.problem import EXIT_USAGE, FailedError
from gateway.cli.reloading import Reloaded, reload_outcome
from services.runtime.clock import Clock
from services.runtime.telemetry import REFUSED_TO_START

STOP_GRACE_S = 2.0
"""What a process gets on top of its drain time before it is killed."""
KILL_TIMEOUT_S = 5.0
"""How long the kernel may take to end a killed process."""
LOG_TAIL_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Serving:
    """Tells that a process serves."""

    name: str
    address: str
    pid: int
    after_s: float
    """How long it took from its start."""
    again: bool
    """True when it has served before."""


@dataclass(frozen=True, slots=True)
class Exited:
    """Tells that a process ended by itself, and when it starts again."""

    name: str
    pid: int
    returncode: int
    """As `subprocess` says it: negative for a signal."""
    problem: str
    """What it logged last, when it said so."""
    pause_s: float


@dataclass(frozen=True, slots=True)
class Stopped:
    """Tells that a process ended because it was told to."""

    name: str
    pid: int
    returncode: int
    after_s: float


Notice = Serving | Exited | Stopped | Reloaded
Announce = Callable[[Notice], None]


def ending_text(returncode: int) -> str:
    """Return how a process ended, for people."""
    if returncode >= 0:
        return f"exited with code {returncode}"
    try:
        return f"was killed by {signal.Signals(-returncode).name}"
    except ValueError:
        return f"was killed by signal {-returncode}"


class Child:
    """Is one process of the suite, with all its successors."""

    def __init__(
        self,
        part: Part,
        *,
        environ: Mapping[str, str],
        log: Path,
        clock: Clock,
        backoff: Backoff,
        announce: Announce,
    ) -> None:
        """Take what to run, where it logs, and whom to tell.

        Args:
            part: the process.
            environ: its environment.
            log: the file that gets all its output; it exists.
            clock: the clock.
            backoff: the pauses between its lives.
            announce: is told what happens to it.
        """
        self.part = part
        self.log = log
        self.refusal = ""
        """Why the process refused to start at all; empty while it did not."""
        self._environ = dict(environ)
        self._clock = clock
        self._backoff = backoff
        self._announce = announce
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        self._settled = asyncio.Event()
        self._served = False
        self._reload_asked = asyncio.Event()

    @property
    def served(self) -> bool:
        """Return whether the process has served at least once."""
        return self._served

    async def wait_settled(self) -> None:
        """Return once the process serves for the first time, or nothing keeps it alive."""
        await self._settled.wait()

    def stop(self) -> None:
        """Ask the process to finish its calls and end."""
        self._stop.set()

    def reload(self) -> None:
        """Have the process read its configuration again: now, or as soon as it serves.

        Before that it may have read the file already, and would end by the signal. What comes of it
        is announced.
        """
        self._reload_asked.set()

    def hurry(self) -> None:
        """Do not wait for calls in flight any longer."""
        self._hurry.set()

    async def keep_alive(self) -> None:
        """Run the process again and again until it is told to stop, or refuses to start."""
        try:
            await self._keep_alive()
        finally:
            self._settled.set()

    async def _keep_alive(self) -> None:
        while not self._stop.is_set():
            began = self._clock.now()
            log_start = self.log.stat().st_size
            self._reload_asked.clear()
            process = await self._spawn()
            returncode = await self._live(process, began)
            if self._stop.is_set():
                return
            problem = last_problem(self.log, log_start)
            if returncode == EXIT_USAGE and not self._served:
                self.refusal = problem or f"{self.part.name} {ending_text(returncode)}"
                return
            pause_s = self._backoff.pause_s(self._clock.now() - began)
            self._announce(Exited(self.part.name, process.pid, returncode, problem, pause_s))
            await _wait(self._stop, pause_s)

    async def _spawn(self) -> asyncio.subprocess.Process:
        # -I and -S spare the wrapper all that it does not need. -P keeps a folder of the user's
        # that happens to be named `services` from being taken for ours.
        wrapper = (sys.executable, "-I", "-S", str(Path(child.__file__)), str(os.getpid()))
        command = (sys.executable, "-P", "-m", self.part.module, *self.part.arguments)
        with self.log.open("ab") as output:
            return await asyncio.create_subprocess_exec(
                *wrapper,
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self._environ,
                # The terminal's Ctrl-C is for `up` alone, which stops its hops in order.
                process_group=0,
            )

    async def _live(self, process: asyncio.subprocess.Process, began: float) -> int:
        """Watch one life of the process; return its exit code."""
        attending = asyncio.create_task(self._attend(process, began))
        stopping = asyncio.create_task(self._stop.wait())
        exiting = asyncio.create_task(process.wait())
        try:
            watched = {exiting, stopping, attending}
            await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
            if attending.done():
                attending.result()
            if not exiting.done():
                await self._end(process, exiting)
            return exiting.result()
        finally:
            if process.returncode is None:  # we are being torn down
                process.kill()
            for task in (attending, stopping, exiting):
                task.cancel()
            await asyncio.wait((attending, stopping, exiting))

    async def _attend(self, process: asyncio.subprocess.Process, began: float) -> Never:
        """Tell when a process serves, then have it reload whenever that is asked for."""
        name, pid = self.part.name, process.pid
        await wait_until_serving(name, self.part.address, self._clock)
        again, self._served = self._served, True
        self._announce(Serving(name, self.part.address, pid, self._clock.now() - began, again))
        self._settled.set()
        while True:
            await self._reload_asked.wait()
            self._reload_asked.clear()
            start = self.log.stat().st_size
            with suppress(ProcessLookupError):  # it has ended: then it starts again by itself
                process.send_signal(signal.SIGHUP)
            self._announce(await reload_outcome(name, pid, self.log, start, self._clock))

    async def _end(self, process: asyncio.subprocess.Process, exiting: "asyncio.Task[int]") -> None:
        began = self._clock.now()
        process.terminate()
        hurrying = asyncio.create_task(self._hurry.wait())
        await asyncio.wait(
            (exiting, hurrying),
            timeout=self.part.drain_timeout_s + STOP_GRACE_S,
            return_when=asyncio.FIRST_COMPLETED,
        )
        hurrying.cancel()
        if not exiting.done():
            process.kill()
            await asyncio.wait((exiting,), timeout=KILL_TIMEOUT_S)
        if not exiting.done():
            raise FailedError(f"{self.part.name} (process {process.pid}) cannot be killed")
        after_s = self._clock.now() - began
        self._announce(Stopped(self.part.name, process.pid, exiting.result(), after_s))


def last_problem(log: Path, start: int) -> str:
    """Return the last thing that a process complained about before it ended, or an empty text.

    Args:
        log: its log file.
        start: where its present life begins in the file.
    """
    size = log.stat().st_size
    with log.open("rb") as file:
        file.seek(max(start, size - LOG_TAIL_BYTES))
        lines = file.read().decode("utf-8", "replace").splitlines()
    for line in reversed(lines):
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and event.get("event") == REFUSED_TO_START:
            return str(event.get("problem", ""))
    # A traceback ends with the line that says what happened; a log line of ours does not.
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return "" if last.startswith("{") else last[:500]


async def _wait(event: asyncio.Event, length_s: float) -> None:
    try:
        async with asyncio.timeout(length_s):
            await event.wait()
    except TimeoutError:
        return
