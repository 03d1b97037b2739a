"""Shows how every hop does for as long as somebody looks: the verb `health` with `--watch`."""

import asyncio
import signal
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Protocol, cast

import grpc
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from gateway.cli.console import length_text, open_console, silence_stdout, write_json
from gateway.cli.health_view import view
from gateway.cli.hop_health import (
    ASK_TIMEOUT_S,
    NOT_SERVING,
    HopHealth,
    heard,
    is_replica,
    silent,
    to_document,
    unheard,
)
from gateway.cli.policy_notes import policy_notes
from gateway.cli.problem import EXIT_OK
from gateway.cli.whereabouts import Whereabouts, find_hops
from services.runtime.client import open_channel
from services.runtime.clock import Clock
from services.runtime.durations import to_duration
from services.runtime.topology import DEPLOYMENTS, HOPS
from sixhop.runtime.v1 import runtime_pb2
from sixhop.runtime.v1.runtime_pb2_grpc import RuntimeServiceStub

ALIVE_INTERVAL_S = 0.5
"""How often a hop has to say that it lives. One that does not for as long as `health` waits, and
this, is silent. A state costs it less than a millisecond of CPU."""
LINE_INTERVAL_S = 10.0
"""How often a state is written that is as it was, where lines stay."""
RETRY_S = 1.0
"""How soon a hop that was not heard is asked again."""
REFRESH_PER_S = 4
_CAUSES = {
    runtime_pb2.WATCH_CAUSE_FIRST: "first",
    runtime_pb2.WATCH_CAUSE_CHANGE: "change",
    runtime_pb2.WATCH_CAUSE_INTERVAL: "interval",
}


class Watch(Protocol):
    """Shows states as they come."""

    def told(self, hop: HopHealth, cause: str) -> None:
        """Show how a hop does now, and why it is told.

        Args:
            hop: the hop.
            cause: `first`, `change` or `interval`; `lost` when it is not heard any more.
        """
        ...


class LiveWatch:
    """Draws on a terminal and redraws."""

    def __init__(self, live: Live, problem: str = "") -> None:
        """Take what draws, and what is wrong with the configuration."""
        self._live = live
        self._problem = problem
        self._hops: dict[tuple[int, str], HopHealth] = {}

    def told(self, hop: HopHealth, cause: str) -> None:
        """Draw with the next turn."""
        order = (*HOPS, *DEPLOYMENTS)
        self._hops[order.index(hop.hop), hop.address] = hop
        known = [self._hops[place] for place in sorted(self._hops)]
        self._live.update(Group(*view(known, self._problem)))


class LineWatch:
    """Writes a line for what has changed, for files and pipes."""

    def __init__(self, console: Console, clock: Clock) -> None:
        """Take where to write, and the time of day."""
        self._console = console
        self._clock = clock

    def told(self, hop: HopHealth, cause: str) -> None:
        """Write a line, unless nothing has changed."""
        if cause != "interval":
            time = self._clock.utc().strftime("%H:%M:%S")
            self._console.print(Text(f"{time} {state_line(hop)}"), soft_wrap=True)
            self._console.file.flush()


class JsonWatch:
    """Writes states as documents, each in one line, for programs."""

    def __init__(self, clock: Clock) -> None:
        """Take the time."""
        self._clock = clock
        self._written_at: dict[str, float] = {}
        """When each process was written last, by its name."""

    def told(self, hop: HopHealth, cause: str) -> None:
        """Write a document; of what is as it was, one now and then."""
        now = self._clock.now()
        due = self._written_at.get(hop.name, now) + LINE_INTERVAL_S
        if cause == "interval" and now < due:
            return
        self._written_at[hop.name] = now
        time = self._clock.utc().isoformat(timespec="milliseconds")
        write_json(sys.stdout, {"time": time, "cause": cause, **to_document(hop)})


def state_line(hop: HopHealth) -> str:
    """Return how a hop does in one line."""
    parts = [f"{hop.state}{f' ({hop.detail})' if not hop.serves else ''}"]
    if hop.told is not None:
        parts.append(f"{hop.inflight_count} now, {hop.call_count} calls, {hop.error_count} errors")
        if hop.call_count:
            parts.append(f"p50 {length_text(hop.p50_s)}")
        sick = [each for each in hop.dependencies if not each.is_closed]
        parts += [f"breaker of {each.key} {each.breaker_state}" for each in sick]
        parts += policy_notes(hop.told)
    return f"{hop.name:<8} {'; '.join(parts)}"


async def watch(
    environ: Mapping[str, str],
    clock: Clock,
    *,
    config_path: Path | None = None,
    as_json: bool = False,
) -> int:
    """Show how every hop does until SIGINT or SIGTERM; return the exit code.

    While the configuration is broken, those are shown whose address is known all the same.
    """
    found = find_hops(environ, config_path)
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    console = open_console(sys.stdout)
    if console.is_terminal and not as_json:
        with Live(console=console, screen=True, refresh_per_second=REFRESH_PER_S) as live:
            await _follow_all(found, LiveWatch(live, found.problem), clock, stop)
        return EXIT_OK
    for line in found.problem.splitlines():
        sys.stderr.write(f"problem: {line}\n")
    shown = JsonWatch(clock) if as_json else LineWatch(console, clock)
    await _follow_all(found, shown, clock, stop)
    return EXIT_OK


async def _follow_all(found: Whereabouts, shown: Watch, clock: Clock, stop: asyncio.Event) -> None:
    """Follow every hop until it is told to stop, or until nobody reads any more."""
    try:
        async with asyncio.TaskGroup() as group:
            following = [
                group.create_task(_Following(hop, address, found, shown).follow(clock))
                for hop, address in found.hops
            ]
            await stop.wait()
            for task in following:
                task.cancel()
    except* BrokenPipeError:
        silence_stdout()


class _Following:
    """Follows one process."""

    def __init__(self, hop: str, address: str, found: Whereabouts, shown: Watch) -> None:
        self._hop = hop
        self._address = address
        self._replica = is_replica(hop, found.hops)
        self._in_force = found.in_force
        self._shown = shown

    async def follow(self, clock: Clock) -> None:
        """Tell how it does, for ever."""
        lost: HopHealth | None = None
        while True:
            before = lost
            lost, was_heard = await self._follow_once()
            if was_heard or before is None or before != lost:
                self._tell(lost, "lost")
            await clock.sleep(RETRY_S)

    async def _follow_once(self) -> tuple[HopHealth, bool]:
        """Tell how it does until it is heard no more; return how it is then, and if it was."""
        hop, address = self._hop, self._address
        request = runtime_pb2.WatchSnapshotsRequest(
            max_interval_duration=to_duration(ALIVE_INTERVAL_S)
        )
        was_heard = False
        async with open_channel(address) as channel:
            call = RuntimeServiceStub(channel).WatchSnapshots(request)
            try:
                while True:
                    limit_s = ASK_TIMEOUT_S + (ALIVE_INTERVAL_S if was_heard else 0.0)
                    async with asyncio.timeout(limit_s):
                        response = await call.read()
                    if response is grpc.aio.EOF:
                        return _drained(hop, address), was_heard
                    state = cast(runtime_pb2.WatchSnapshotsResponse, response)
                    was_heard = True
                    told = state.snapshot
                    health = heard(hop, address, told, self._in_force, serves=told.ready)
                    self._tell(health, _CAUSES.get(state.cause, "change"))
            except grpc.aio.AioRpcError as error:
                return unheard(hop, address, error), was_heard
            except TimeoutError:
                return silent(hop, address), was_heard
            finally:
                call.cancel()

    def _tell(self, health: HopHealth, cause: str) -> None:
        self._shown.told(replace(health, replica=self._replica), cause)


def _drained(hop: str, address: str) -> HopHealth:
    return HopHealth(hop=hop, address=address, state=NOT_SERVING, detail="it drains")
