"""Asks three real questions of a suite of its own: the verb `demo`."""

import asyncio
import random
import signal
import socket
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from gateway.cli.artefacts import DEFAULT_FOLDER
from gateway.cli.ask import run_question, save_files
from gateway.cli.client import GatewayClient
from gateway.cli.console import length_text, open_console
from gateway.cli.events import Question
from gateway.cli.parts import Plan, make_plan
from gateway.cli.problem import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK
from gateway.cli.progress import LiveProgress, PlainProgress, Progress
from gateway.cli.suite import Suite, log_folder, suite_of
from gateway.cli.supervisor import Exited, Notice, Serving, ending_text
from gateway.cli.up import started_unless
from gateway.cli.view import show_answer, show_failure
from services.runtime.clock import Clock
from services.runtime.config import PREFIX
from services.runtime.topology import DEFAULT_PORTS

DEADLINE_S = 60.0
"""The local model is slow on small machines, and a demonstration has time."""


@dataclass(frozen=True, slots=True)
class DemoQuestion:
    """Is one question of the demonstration."""

    text: str
    folder: str
    """Where its files go."""
    about: str
    """What it shows."""


QUESTIONS = (
    DemoQuestion(
        "Which category grew most last quarter?", "growth", "numbers from the data, in English"
    ),
    DemoQuestion("上个季度哪个地区的退货率最高？", "returns", "the same in Chinese"),
    DemoQuestion("How long is the warranty on a kettle?", "warranty", "an answer from documents"),
)


async def demo(environ: Mapping[str, str], clock: Clock, *, out: Path | None = None) -> int:
    """Start a suite on free ports, ask, stop; return 0 only when every question was answered.

    Raises:
        RefusedError: the configuration is wrong.
        FailedError: a process did not get ready; nothing was left running.
    """
    console = open_console(sys.stdout)
    plan = _plan_on_free_ports(environ)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    answered_count = 0
    async with suite_of(
        plan,
        logs=log_folder(environ, plan),
        clock=clock,
        rng=random.Random(),
        announce=lambda notice: _tell(console, notice),
    ) as suite:
        _say(console, f"language model: {plan.model}", "dim")
        began = clock.now()
        if not await started_unless(stop, suite):
            return EXIT_INTERRUPTED
        _say(console, f"ready after {length_text(clock.now() - began)}", "bold green")
        asking = asyncio.create_task(
            _ask_all(console, plan, clock, DEFAULT_FOLDER if out is None else out)
        )
        answered_count = await _unless_stopped(asking, suite, stop)
        _say(console, "stopping the suite", "dim")
    if stop.is_set():
        return EXIT_INTERRUPTED
    _say(
        console,
        f"{answered_count} of {len(QUESTIONS)} questions were answered; now your own: "
        '`sixhop up`, and in another terminal: sixhop ask "..." --data FILE',
    )
    return EXIT_OK if answered_count == len(QUESTIONS) else EXIT_FAILED


async def _unless_stopped(asking: "asyncio.Task[int]", suite: Suite, stop: asyncio.Event) -> int:
    """Return how many questions were answered; a stop or a defect of ours ends the asking."""
    watching = asyncio.create_task(suite.wait(stop))
    try:
        await asyncio.wait((watching, asking), return_when=asyncio.FIRST_COMPLETED)
        if watching.done():
            watching.result()
            return 0
        return asking.result()
    finally:
        for task in (asking, watching):
            task.cancel()
        await asyncio.wait((asking, watching))


async def _ask_all(console: Console, plan: Plan, clock: Clock, out: Path) -> int:
    answered_count = 0
    async with GatewayClient(plan.gateway) as client:
        for number, question in enumerate(QUESTIONS, start=1):
            _say(console, "")
            _say(console, f"{number}. {question.text}", "bold")
            _say(console, f"   ({question.about})", "dim")
            result = await run_question(
                client,
                Question(text=question.text),
                DEADLINE_S,
                _progress(console, clock),
                clock,
            )
            if result.failure is None:
                answered_count += 1
                save_files(result, out / question.folder)
                show_answer(console, result)
            else:
                show_failure(console, result)
    return answered_count


def _progress(console: Console, clock: Clock) -> Progress:
    return LiveProgress(console, clock) if console.is_terminal else PlainProgress(console)


def _plan_on_free_ports(environ: Mapping[str, str]) -> Plan:
    """Return the plan of a suite that is in nobody's way."""
    with ExitStack() as held:
        ports = []
        for _ in DEFAULT_PORTS:
            holder = held.enter_context(socket.socket())
            holder.bind(("127.0.0.1", 0))
            ports.append(holder.getsockname()[1])
    own = {
        f"{PREFIX}{name.upper()}__{key}": value
        for name, port in zip(DEFAULT_PORTS, ports, strict=True)
        for key, value in (("PORT", str(port)), ("HOST", "127.0.0.1"))
    }
    # Whoever keeps keys in this folder need not show one to see the demonstration.
    own[f"{PREFIX}GATEWAY__OPEN"] = "true"
    return make_plan({**environ, **own}, None, with_llm=True)


def _tell(console: Console, notice: Notice) -> None:
    if isinstance(notice, Serving):
        _say(console, f"{notice.name:<8} serves after {length_text(notice.after_s)}", "dim")
    elif isinstance(notice, Exited):
        _say(console, f"{notice.name:<8} {ending_text(notice.returncode)}", "yellow")


def _say(console: Console, text: str, style: str = "") -> None:
    console.print(Text(text, style=style), soft_wrap=True)
