"""Starts the suite and keeps it running: the verb `up`."""

import asyncio
import os
import random
import signal
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from rich import box
from rich.table import Table
from rich.text import Text

from gateway.cli.console import length_text, open_console, write_json
from gateway.cli.log_tail import follow
from gateway.cli.parts import Plan, make_plan
from gateway.cli.problem import EXIT_OK
from gateway.cli.reloading import Outcome, Reloaded, reload_text
from gateway.cli.suite import Suite, log_folder, suite_of
from gateway.cli.supervisor import Exited, Notice, Serving, Stopped, ending_text
from services.runtime.clock import Clock

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
TERMINAL = "/dev/tty"


class Reporter(Protocol):
    """Tells what happens to a suite."""

    def planned(self, plan: Plan, logs: Path) -> None:
        """Tell what is going to be started."""
        ...

    def notice(self, notice: Notice) -> None:
        """Tell what happened to a process."""
        ...

    def ready(self, plan: Plan, after_s: float) -> None:
        """Tell that the suite answers."""
        ...

    def reloading(self) -> None:
        """Tell that the hops are asked to read their configuration again."""
        ...

    def stopping(self) -> None:
        """Tell that the suite is being stopped."""
        ...


class PlainReporter:
    """Tells it to people."""

    def __init__(self) -> None:
        """Write to standard output."""
        self._console = open_console(sys.stdout)
        self._serving: dict[str, Serving] = {}

    def planned(self, plan: Plan, logs: Path) -> None:
        """Tell what is going to be started."""
        self._say(f"language model: {plan.model}")
        self._say(f"logs: {logs}")
        self._say(f"starting {', '.join(part.name for part in plan.parts)}")

    def notice(self, notice: Notice) -> None:
        """Tell what happened to a process."""
        match notice:
            case Serving():
                self._serving[notice.name] = notice
                word = "serves again" if notice.again else "serves"
                self._say(
                    f"{notice.name:<8} {word} after {length_text(notice.after_s)}", style="green"
                )
            case Exited():
                why = f" ({notice.problem})" if notice.problem else ""
                self._say(
                    f"{notice.name:<8} {ending_text(notice.returncode)}{why}; "
                    f"starting it again in {length_text(notice.pause_s)}",
                    style="yellow",
                )
            case Stopped():
                how = "" if notice.returncode == 0 else f", {ending_text(notice.returncode)}"
                self._say(f"{notice.name:<8} stopped after {length_text(notice.after_s)}{how}")
            case Reloaded():
                style = "green" if notice.outcome is Outcome.TOOK else "yellow"
                self._say(f"{notice.name:<8} {reload_text(notice)}", style=style)

    def ready(self, plan: Plan, after_s: float) -> None:
        """Tell that the suite answers."""
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for heading in ("hop", "address", "pid"):
            table.add_column(heading, justify="right" if heading == "pid" else "left")
        for part in reversed(plan.parts):
            pid = self._serving[part.name].pid
            table.add_row(part.name, part.address, str(pid))
        self._console.print(table)
        self._say(f"ready after {length_text(after_s)}", style="bold green")
        if plan.url:
            self._say(f"OpenAI clients come in at {plan.url}/v1, browsers at {plan.url}")
        self._say('ask with: sixhop ask "Which category grew most last quarter?"  Ctrl-C stops.')

    def reloading(self) -> None:
        """Tell that the hops are asked to read their configuration again."""
        self._say("asking the hops to read their configuration again")

    def stopping(self) -> None:
        """Tell that the suite is being stopped."""
        self._say("stopping; once more kills")

    def _say(self, text: str, style: str = "") -> None:
        self._console.print(Text(text, style=style), soft_wrap=True)


class JsonReporter:
    """Tells it to programs: one JSON document per line."""

    def planned(self, plan: Plan, logs: Path) -> None:
        """Tell what is going to be started."""
        addresses = {part.name: part.address for part in plan.parts}
        self._say("planned", model=plan.model, logs=str(logs), addresses=addresses)

    def notice(self, notice: Notice) -> None:
        """Tell what happened to a process."""
        self._say(type(notice).__name__.lower(), **asdict(notice))

    def ready(self, plan: Plan, after_s: float) -> None:
        """Tell that the suite answers."""
        self._say("ready", gateway=plan.gateway, url=plan.url, after_s=round(after_s, 3))

    def reloading(self) -> None:
        """Tell that the hops are asked to read their configuration again."""
        self._say("reloading")

    def stopping(self) -> None:
        """Tell that the suite is being stopped."""
        self._say("stopping")

    def _say(self, event: str, **fields: Any) -> None:
        write_json(sys.stdout, {"event": event, **fields})


async def up(
    environ: Mapping[str, str],
    clock: Clock,
    *,
    config_path: Path | None = None,
    with_llm: bool = True,
    as_json: bool = False,
    show_logs: bool = False,
) -> int:
    """Run a suite until SIGINT or SIGTERM; return the exit code.

    SIGHUP is passed on to the hops, which read their configuration again, and what each has made of
    it is told. But a terminal that goes
    away sends it too, and then the suite stops with it.

    Raises:
        RefusedError: the configuration is wrong or a port is taken; nothing was left running.
        FailedError: a process did not get ready; nothing was left running.
    """
    began = clock.now()
    plan = make_plan(environ, config_path, with_llm=with_llm)
    logs = log_folder(environ, plan)
    reporter: Reporter = JsonReporter() if as_json else PlainReporter()
    stop = asyncio.Event()
    async with suite_of(
        plan, logs=logs, clock=clock, rng=random.Random(), announce=reporter.notice
    ) as suite:
        _on_signals(stop, suite, reporter)
        reporter.planned(plan, logs)
        files = [logs / f"{part.name}.log" for part in plan.parts] if show_logs else []
        following = asyncio.create_task(follow(files, sys.stdout, clock))
        try:
            if await started_unless(stop, suite):
                reporter.ready(plan, clock.now() - began)
                await suite.wait(stop)
        finally:
            following.cancel()
            await asyncio.wait({following})
    return EXIT_OK


async def started_unless(stop: asyncio.Event, suite: Suite) -> bool:
    """Start a suite; return False when it was told to stop before it was ready.

    Raises:
        RefusedError: as `Suite.start`.
    """
    starting = asyncio.ensure_future(suite.start())
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not starting.done():
        starting.cancel()
        await asyncio.wait({starting})
    if starting.cancelled():
        return False
    starting.result()
    return True


def _on_signals(stop: asyncio.Event, suite: Suite, reporter: Reporter) -> None:
    # Who was started with nohup outlives its terminal.
    bound = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN and _has_terminal()

    def heard() -> None:
        if stop.is_set():
            suite.hurry()
        else:
            stop.set()
            reporter.stopping()

    def hung_up() -> None:
        if bound and not _has_terminal():
            heard()
        elif not stop.is_set():
            reporter.reloading()
            suite.reload()

    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, heard)
    loop.add_signal_handler(signal.SIGHUP, hung_up)


def _has_terminal() -> bool:
    try:
        os.close(os.open(TERMINAL, os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True
