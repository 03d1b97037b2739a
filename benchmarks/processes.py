"""Starts the processes of a measurement, reads what they use, and ends them by their ids."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from services.runtime.launch import GRPC_EXPERIMENTS

ROOT = Path(__file__).resolve().parent.parent
STOP_TIMEOUT_S = 5.0
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_MIB = 1024 * 1024


class ChainError(Exception):
    """Says that a chain did not start or did not answer, and what its processes said last."""


class Processes:
    """Owns processes; whatever happens inside the block, none outlives it."""

    def __init__(self) -> None:
        """Own nothing yet."""
        self._folder = tempfile.TemporaryDirectory(prefix="sixhop-benchmark-")
        self.folder = self._folder.name
        """Where they work and write; it goes with them."""
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, arguments: Sequence[str], settings: Mapping[str, str]) -> int:
        """Start Python with arguments and settings; return the process id."""
        with self._log(name).open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, *arguments],
                env=environment(settings),
                # Not here: a sixhop.toml of the user's would change what is measured.
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._running[name] = process
        return process.pid

    def complaints(self) -> str:
        """Return the last lines of the processes that ended by themselves."""
        return "\n".join(
            f"{name} ended with {process.returncode}:\n{self.output(name)[-500:]}"
            for name, process in self._running.items()
            if process.poll() is not None
        )

    def output(self, name: str) -> str:
        """Return what a process has written."""
        return self._log(name).read_text(encoding="utf-8", errors="replace")

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End every process, the stopped ones too."""
        for process in self._running.values():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
        for process in self._running.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STOP_TIMEOUT_S)
            if process.poll() is None:
                process.kill()
                process.wait()
        self._folder.cleanup()

    def _log(self, name: str) -> Path:
        return Path(self.folder) / f"{name}.log"


def environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Return this process's environment without the suite's settings, and with these."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SIXHOP_")}
    return kept | {
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'protos'}",
        "GRPC_EXPERIMENTS": GRPC_EXPERIMENTS,
        "GRPC_VERBOSITY": "ERROR",
        **settings,
    }


def free_ports(count: int) -> list[int]:
    """Return ports of 127.0.0.1 that nobody listened on a moment ago."""
    with contextlib.ExitStack() as held:
        ports = []
        for _ in range(count):
            listener = held.enter_context(socket.socket())
            listener.bind(("127.0.0.1", 0))
            ports.append(int(listener.getsockname()[1]))
        return ports


def cpu_s(pids: Sequence[int]) -> float:
    """Return the CPU time that the processes have used so far, in seconds."""
    ticks = 0
    for pid in pids:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
        # The name, in brackets, may hold anything; user and system time are fields 14 and 15.
        user, system = stat.rpartition(")")[2].split()[11:13]
        ticks += int(user) + int(system)
    return ticks / _TICKS_PER_S


def resident_mib(pid: int) -> float:
    """Return the resident memory of a process in MiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / _MIB
