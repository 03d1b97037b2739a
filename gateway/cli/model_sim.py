"""Starts a simulated provider of language models and keeps it running: the verb `model-sim`."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.text import Text

from gateway.cli import child
from gateway.cli.console import one_line, open_console, write_json
from gateway.cli.parts import naming
from gateway.cli.problem import EXIT_FAILED, EXIT_OK, EXIT_USAGE, FailedError, RefusedError
from services.runtime.config import PREFIX
from services.runtime.telemetry import REFUSED_TO_START

MODULE = "services.model.sim"
START_TIMEOUT_S = 30.0
"""How long it may take to serve; a busy machine needs a tenth of it."""
STOP_TIMEOUT_S = 7.0
LIST_FAULTS = "--list-faults"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimOptions:
    """Is what the command line of `model-sim` says."""

    host: str = ""
    port: int = 0
    """0 takes what the configuration says, or a free one."""
    seed: int | None = None
    script: Path | None = None
    faults: Sequence[str] = ()
    settings: Sequence[str] = ()
    """More settings of `[sim]`, as `name=value`."""
    config_path: Path | None = None
    as_json: bool = False


async def list_faults(environ: Mapping[str, str]) -> int:
    """Print every fault and its knobs; return the exit code."""
    process = await asyncio.create_subprocess_exec(*_command(LIST_FAULTS), env=environ)
    return EXIT_OK if await process.wait() == EXIT_OK else EXIT_FAILED


async def model_sim(environ: Mapping[str, str], options: SimOptions) -> int:
    """Run the simulator until SIGINT or SIGTERM; return the exit code.

    Raises:
        RefusedError: an option, the configuration or the script is wrong, or the port is taken.
        FailedError: it ended by itself.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    process = await asyncio.create_subprocess_exec(
        *_command(),
        env=sim_environ(environ, options),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        # The terminal's Ctrl-C is for this verb alone, which stops the simulator in order.
        process_group=0,
    )
    complaints: list[str] = []
    listening = asyncio.create_task(_listen(process.stderr, complaints))
    stopping = asyncio.create_task(stop.wait())
    try:
        return await _live(process, stopping, complaints, options)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        for task in (listening, stopping):
            task.cancel()
        await asyncio.wait((listening, stopping))


def sim_environ(environ: Mapping[str, str], options: SimOptions) -> dict[str, str]:
    """Return the environment that tells the simulator its settings.

    Raises:
        RefusedError: a setting is not written as `name=value`.
    """
    given: dict[str, str] = {}
    for setting in options.settings:
        name, separator, value = setting.partition("=")
        if not separator or not name.strip():
            raise RefusedError(f"--set {setting}: write a setting of [sim] as name=value")
        given[name.strip()] = value
    if options.host:
        given["host"] = options.host
    if options.port:
        given["port"] = str(options.port)
    if options.seed is not None:
        given["seed"] = str(options.seed)
    if options.script is not None:
        given["script"] = str(options.script.resolve())
    if options.faults:
        given["faults"] = json.dumps(list(options.faults))
    named = {f"{PREFIX}SIM__{name.upper()}": value for name, value in given.items()}
    return {**naming(environ, options.config_path), **named}


def _command(*arguments: str) -> Sequence[str]:
    # As the supervisor starts hops: the kernel ends it when this process dies, however it died.
    wrapper = (sys.executable, "-I", "-S", str(Path(child.__file__)), str(os.getpid()))
    return (*wrapper, sys.executable, "-P", "-m", MODULE, *arguments)


async def _live(
    process: asyncio.subprocess.Process,
    stopping: "asyncio.Task[Any]",
    complaints: Sequence[str],
    options: SimOptions,
) -> int:
    if process.stdout is None:
        raise RuntimeError("the simulator was started without a pipe")
    told = await _first_line(process.stdout, stopping)
    if told is None and stopping.done():
        return EXIT_OK
    if told is None:
        await process.wait()
        raise _refusal(process.returncode, complaints)
    _show(told, options)
    exiting = asyncio.create_task(process.wait())
    # All the time: whoever writes more than a pipe holds ends only when it is read, and what it
    # came to grows with every request.
    rest = asyncio.create_task(process.stdout.read())
    await asyncio.wait((exiting, stopping), return_when=asyncio.FIRST_COMPLETED)
    if exiting.done():
        await rest
        raise _refusal(exiting.result(), complaints)
    process.terminate()
    await asyncio.wait((exiting,), timeout=STOP_TIMEOUT_S)
    if not exiting.done():
        process.kill()
    await exiting
    _show_verdict(await rest, as_json=options.as_json)
    return EXIT_OK


async def _first_line(
    stdout: asyncio.StreamReader, stopping: "asyncio.Task[Any]"
) -> dict[str, Any] | None:
    """Return what the simulator tells once it serves; None when it does not come to that.

    Raises:
        FailedError: it takes too long.
    """
    reading = asyncio.create_task(stdout.readline())
    await asyncio.wait(
        (reading, stopping), timeout=START_TIMEOUT_S, return_when=asyncio.FIRST_COMPLETED
    )
    if not reading.done():
        reading.cancel()
        await asyncio.wait((reading,))
        if stopping.done():
            return None
        raise FailedError(f"the simulator does not serve after {START_TIMEOUT_S:g} s")
    line = reading.result()
    found: dict[str, Any] | None = json.loads(line) if line.startswith(b"{") else None
    return found


async def _listen(stream: asyncio.StreamReader | None, complaints: list[str]) -> None:
    """Pass on what the simulator complains about, but for its refusal to start."""
    while stream is not None and (line := (await stream.readline()).decode("utf-8", "replace")):
        complaints.append(line)
        del complaints[:-20]
        if REFUSED_TO_START not in line:
            sys.stderr.write(line)


def _refusal(returncode: int | None, complaints: Sequence[str]) -> RefusedError:
    for line in reversed(complaints):
        if line.startswith("{") and REFUSED_TO_START in line:
            return RefusedError(str(json.loads(line).get("problem", "")), reason="BAD_CONFIG")
    last = one_line(complaints[-1]) if complaints else "it said nothing"
    kind = RefusedError if returncode == EXIT_USAGE else FailedError
    return kind(f"the simulator ended with code {returncode}: {last}", reason="ENDED")


def _show(told: Mapping[str, Any], options: SimOptions) -> None:
    if options.as_json:
        write_json(sys.stdout, {"event": "serving", **told})
        return
    url, control = told["base_url"], told["control_url"]
    _say(
        f"the simulated provider serves at {url} with seed {told['seed']}; Ctrl-C stops it",
        "",
        "the suite on it:",
        f"  SIXHOP_MODEL__BASE_URL={url} SIXHOP_MODEL__MODEL={told['model']} sixhop up",
        "a fault for one request (`sixhop model-sim --list-faults` has them all):",
        '  "model": "sim/stall?at_token=5"   or the header   x-sim-fault: reset-mid-event',
        "faults for all, and a script of them:",
        f"""  curl -d '{{"rules": ["503?p=0.2"]}}' {control}/sim/faults""",
        f"  curl --data-binary @outage.toml {control}/sim/script",
        "what came, and how well the client did:",
        f"  curl {control}/sim/log     curl {control}/verdict",
    )


def _show_verdict(line: bytes, *, as_json: bool) -> None:
    if not line.startswith(b"{"):
        return
    verdict = json.loads(line)
    if as_json:
        write_json(sys.stdout, {"event": "stopped", **verdict})
        return
    totals = verdict["totals"]
    _say(
        "",
        f"{totals['requests']} requests, {totals['attempts']} attempts, "
        f"{totals['tokens_wasted']} tokens wasted; the client was {verdict['grade']}",
    )


def _say(*lines: str) -> None:
    console = open_console(sys.stdout)
    for line in lines:
        console.print(Text(line), soft_wrap=True)
