"""Asks every room what it thinks of a configuration; only a room knows its own section."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.cli.parts import MODULES
from gateway.cli.problem import EXIT_OK, RefusedError
from services.runtime.checks.finding import Finding, Severity
from services.runtime.launch import AS
from services.runtime.telemetry import CHECK_FOUND, REFUSED_TO_START
from services.runtime.topology import DEPLOYMENTS, GATEWAY, HOPS

ROOM_TIMEOUT_S = 60.0
"""How long a room may take to say what it thinks; it has to start Python for it."""
ROOMS = tuple(hop for hop in HOPS if hop != GATEWAY)


@dataclass(frozen=True, slots=True)
class Opinion:
    """Is what was found by somebody."""

    unreadable: tuple[str, ...] = ()
    """What cannot be read at all."""
    findings: tuple[Finding, ...] = ()
    """What contradicts itself, or makes one wonder."""
    missing: tuple[str, ...] = ()
    """Those of the unreadable that only name what is not on this machine."""


AskHop = Callable[[str, Mapping[str, str]], Awaitable[Opinion]]
"""Returns what one hop finds in the configuration that an environment names."""
AskRooms = Callable[[Mapping[str, str]], Awaitable[Opinion]]
"""Returns what all rooms find in the configuration that an environment names."""


async def ask_rooms(environ: Mapping[str, str]) -> Opinion:
    """Return what all rooms find in the configuration that this environment names."""
    found = await asyncio.gather(*(ask_hop(room, environ) for room in ROOMS))
    return merged(found)


def merged(opinions: Sequence[Opinion]) -> Opinion:
    """Return all that was found, each thing once."""
    return Opinion(
        tuple(dict.fromkeys(text for opinion in opinions for text in opinion.unreadable)),
        tuple(dict.fromkeys(each for opinion in opinions for each in opinion.findings)),
        tuple(dict.fromkeys(text for opinion in opinions for text in opinion.missing)),
    )


async def room_texts(environ: Mapping[str, str]) -> list[str]:
    """Return each room's part of the configuration that this environment names, as TOML.

    Raises:
        RefusedError: a room cannot read its section.
    """
    told = await asyncio.gather(*(_run(room, "--print-config", environ) for room in ROOMS))
    for room, ran in zip(ROOMS, told, strict=True):
        if not ran.well:
            lines = ran.err.strip().splitlines() or [f"{room}: it failed and said nothing"]
            raise RefusedError(lines[-1], reason="BAD_CONFIG")
    return [ran.out for ran in told]


async def ask_hop(hop: str, environ: Mapping[str, str]) -> Opinion:
    """Return what one hop finds in the configuration that this environment names."""
    ran = await _run(hop, "--check", environ)
    return said(hop, f"{ran.out}\n{ran.err}", well=ran.well)


@dataclass(frozen=True, slots=True)
class _Ran:
    """Is a room's process that has ended."""

    out: str
    err: str
    well: bool


async def _run(room: str, flag: str, environ: Mapping[str, str]) -> _Ran:
    """Start a room for a question and wait until it has answered."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-P", "-m", MODULES[room], flag),
        *((f"{AS}{room}",) if room in DEPLOYMENTS else ()),
        env=environ,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(ROOM_TIMEOUT_S):
            out, err = await process.communicate()
    except TimeoutError:
        late = f"no word from {room} within {ROOM_TIMEOUT_S:g} s; try again when less is going on"
        return _Ran("", late, well=False)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    well = process.returncode == EXIT_OK
    return _Ran(out.decode("utf-8", "replace"), err.decode("utf-8", "replace"), well)


def said(room: str, output: str, *, well: bool) -> Opinion:
    """Return what a room has found, from what it wrote.

    Args:
        room: the room.
        output: all that it wrote.
        well: whether it ended as one that has found nothing wrong.
    """
    lines = [line for line in output.splitlines() if line.strip()]
    events = [event for event in map(_event, lines) if event]
    refusals = [event for event in events if event["event"] == REFUSED_TO_START]
    unreadable = tuple(str(event.get("problem", "")) for event in refusals)
    missing = tuple(
        str(event.get("problem", "")) for event in refusals if event.get("missing_file") is True
    )
    findings = tuple(_finding(event) for event in events if event["event"] == CHECK_FOUND)
    if not well and not unreadable and not findings:
        last = lines[-1].strip() if lines else "it failed and said nothing"
        unreadable = (f"{room}: {last}",)
    return Opinion(unreadable, findings, missing)


def _event(line: str) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except ValueError:
        return {}
    return event if isinstance(event, dict) and "event" in event else {}


def _finding(event: Mapping[str, Any]) -> Finding:
    known = event.get("severity") in Severity.__members__.values()
    return Finding(
        rule=str(event.get("rule", "")),
        severity=Severity(event["severity"]) if known else Severity.VIOLATION,
        text=str(event.get("problem", "")),
    )
