"""Starts processes for tests and ends every one of them, whatever happened."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parent.parent
STOP_TIMEOUT_S = 7.0
"""How long a process may take to end after SIGTERM; longer than a hop drains."""

_THREADS = Path("/proc/self/task")

SHARED: set[int] = set()
"""Processes that a fixture of several tests owns. The watch over leaks lets them live; who puts
one in takes it out, once it has ended."""


def children() -> set[int]:
    """Return the processes that this one has started and not yet waited for."""
    try:
        # A hundred times as quick as to look for them among all processes, and every test asks.
        told = [(thread / "children").read_text() for thread in _THREADS.iterdir()]
    except OSError:  # no Linux, or a thread that has ended just now
        return {each.pid for each in psutil.Process().children()}
    return {int(pid) for text in told for pid in text.split()}


def end_process(process: "subprocess.Popen[bytes]") -> None:
    """Make sure that a shared process is gone: wake it, ask it, kill it."""
    if process.poll() is None:
        process.send_signal(signal.SIGCONT)
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait(STOP_TIMEOUT_S)
    SHARED.discard(process.pid)


def end_all(children: "Sequence[Child]") -> None:
    """End processes in their order, each of which may take its time while the others do."""
    for child in children:
        if child.alive:
            child.send(signal.SIGCONT)
            child.send(signal.SIGTERM)
    for child in children:
        child.end()


class Child:
    """Is one process of Python, started in the repository with its output in files."""

    def __init__(
        self, name: str, arguments: Sequence[str], environment: Mapping[str, str], folder: Path
    ) -> None:
        """Take what to start; `folder` gets `<name>.out` and `<name>.log`."""
        self.name = name
        self.out = folder / f"{name}.out"
        self.log = folder / f"{name}.log"
        self._arguments = [sys.executable, *arguments]
        self._environment = os.environ | environment | {"PYTHONPATH": f"{ROOT}:{ROOT / 'protos'}"}
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start = 0

    @property
    def pid(self) -> int:
        """Return the process's id; it has been started."""
        return self._started().pid

    @property
    def alive(self) -> bool:
        """Return whether it runs, or is stopped but not dead."""
        return self._process is not None and self._process.poll() is None

    def beside(self, name: str, **settings: str) -> "Child":
        """Return another one that starts the same with other settings; it is yet to be started."""
        return Child(name, self._arguments[1:], self._environment | settings, self.log.parent)

    def start(self) -> None:
        """Start it, or start it again; its output is appended."""
        with self.out.open("ab") as out, self.log.open("ab") as log:
            self._log_start = log.tell()
            self._process = subprocess.Popen(
                self._arguments,
                cwd=ROOT,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=log,
            )
        SHARED.add(self._process.pid)

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        self._started().send_signal(number)

    def wait(self, timeout_s: float) -> int:
        """Return the exit code once it has ended.

        Raises:
            subprocess.TimeoutExpired: it has not ended in time.
        """
        process = self._started()
        code = process.wait(timeout_s)
        SHARED.discard(process.pid)
        return code

    def end(self) -> None:
        """Make sure that it is gone: wake it, ask it, kill it."""
        process = self._process
        if process is None:
            return
        end_process(process)

    def events(self, about: str = "") -> Iterator[dict[str, Any]]:
        """Yield the lines that it has logged since its last start and that hold a text.

        A line that is not yet whole is left out.
        """
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            for line in log:
                if line.startswith(b"{") and line.endswith(b"\n") and about.encode() in line:
                    yield json.loads(line)

    def _started(self) -> "subprocess.Popen[bytes]":
        if self._process is None:
            raise RuntimeError(f"{self.name} has not been started")
        return self._process
