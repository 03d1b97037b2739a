"""Asks make what it would do."""

import subprocess

from tests.processes import ROOT

TIMEOUT_S = 15.0


def commands(target: str) -> list[str]:
    """Return the commands that `make` would run for a target, and for what it needs."""
    told = subprocess.run(
        ["make", "--dry-run", target],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=TIMEOUT_S,
    )
    return told.stdout.splitlines()
