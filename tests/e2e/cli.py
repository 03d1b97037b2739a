"""Runs the command line as its users do: as a process, with its output read back."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from services.runtime.topology import HOPS, LLM
from tests.e2e.suite import HERE, TimeLimitError, wait_until
from tests.ports import free_ports
from tests.processes import ROOT, Child

COMMAND_TIMEOUT_S = 90.0
"""The longest that one command may take, on a machine that has other things to do."""
READY_TIMEOUT_S = 90.0
STOP_TIMEOUT_S = 20.0
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class Ran:
    """Is a command that has ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """Return the one JSON document on standard output; fails when there is more or less."""
        document: dict[str, Any] = json.loads(self.out)
        return document


class CommandLine:
    """Runs commands against the ports of one suite."""

    def __init__(self, folder: Path, **settings: str) -> None:
        """Take a folder for logs and files, and settings over those of the tests."""
        self.folder = folder
        self.ports = dict(zip((*HOPS, LLM), free_ports(len(HOPS) + 1), strict=True))
        self.environment: Mapping[str, str] = {
            **{f"SIXHOP_{hop.upper()}__PORT": str(port) for hop, port in self.ports.items()},
            "SIXHOP_DOMAIN__AGENT_DIRS": json.dumps([str(HERE / "agents"), str(HERE / "waiting")]),
            "XDG_STATE_HOME": str(folder / "state"),
            "PYTHONPATH": f"{ROOT}:{ROOT / 'protos'}",
            "PYTHONUNBUFFERED": "1",
            # Whoever keeps keys where the tests run is not to be asked for one.
            "SIXHOP_GATEWAY__OPEN": "true",
            **settings,
        }

    def run(self, *arguments: str, stdin: bytes = b"", **settings: str) -> Ran:
        """Run one command to its end."""
        done = subprocess.run(
            [sys.executable, "-m", "gateway.cli", *arguments],
            cwd=self.folder,
            env=os.environ | self.environment | settings,
            input=stdin,
            capture_output=True,
            timeout=COMMAND_TIMEOUT_S,
            check=False,
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    def child(self, name: str, *arguments: str) -> Child:
        """Return a command that runs beside the test; the test ends it."""
        return Child(name, ["-m", "gateway.cli", *arguments], self.environment, self.folder)


class Up:
    """Is a running `sixhop up --json`."""

    def __init__(self, child: Child) -> None:
        """Take the process; it has been started."""
        self.child = child

    def told(self, event: str) -> list[dict[str, Any]]:
        """Return what it has told under one name, in order."""
        lines = self.child.out.read_text(encoding="utf-8").splitlines()
        return [line for line in map(json.loads, lines) if line["event"] == event]

    def wait_told(self, event: str, *, count: int = 1) -> dict[str, Any]:
        """Return the newest of so many events of one name, once they are there.

        Raises:
            TimeLimitError: they do not come in time, or it has ended.
        """
        wait_until(
            lambda: len(self.told(event)) >= count or not self.child.alive,
            READY_TIMEOUT_S,
            f"`up` tells {event}",
        )
        if len(self.told(event)) < count:
            raise TimeLimitError(f"`up` has ended: {self.child.log.read_text()}")
        return self.told(event)[-1]

    def processes(self) -> dict[str, psutil.Process]:
        """Return the processes of the hops by their names, as they were told last."""
        pids = {each["name"]: each["pid"] for each in self.told("serving")}
        return {name: psutil.Process(pid) for name, pid in pids.items()}


@contextmanager
def running_up(command_line: CommandLine) -> Iterator[Up]:
    """Give a suite that `sixhop up` runs; leaving the block ends it, however."""
    child = command_line.child("up", "up", "--no-llm", "--json")
    child.start()
    up = Up(child)
    try:
        up.wait_told("ready")
        yield up
    finally:
        child.end()
