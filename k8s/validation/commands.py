"""Runs the commands that come with packages."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

TIMEOUT_S = 120.0
"""None of them takes a tenth of it."""


class CommandError(Exception):
    """Says that a command could not do what it was asked to, in its own words."""


def installed(name: str, environment: str = "") -> Path:
    """Return a command that a package has put beside this Python, or into an environment in it."""
    folder = Path(sys.prefix) / environment / "bin" if environment else Path(sys.executable).parent
    return folder / name


def run(
    command: Path, arguments: Sequence[str], *, good: Sequence[int] = (0,)
) -> subprocess.CompletedProcess[str]:
    """Return what a command has written.

    Args:
        command: where it lies.
        arguments: what it is told.
        good: how it may end.

    Raises:
        CommandError: it is not there, or ended otherwise.
    """
    try:
        done = subprocess.run(
            [command, *arguments], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except FileNotFoundError:
        raise CommandError(f"{command} is not there; `make check` installs it") from None
    if done.returncode not in good:
        said = (done.stderr or done.stdout).strip()
        raise CommandError(
            f"{command.name} {' '.join(arguments)} ended with {done.returncode}: {said}"
        )
    return done
