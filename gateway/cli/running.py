"""Runs one verb to its exit code, and holds the options that verbs share."""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli.console import silence_stdout, write_json
from gateway.cli.problem import EXIT_FAILED, EXIT_INTERRUPTED, FailedError, RefusedError
from gateway.cli.profiles import named

Work = Coroutine[Any, Any, int]
"""A verb on its way to its exit code."""

Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="The configuration, a file or a profile such as naive; else sixhop.toml here.",
        callback=named,
    ),
]
Gateway = Annotated[
    str, typer.Option(metavar="HOST:PORT", help="The gateway; else the configuration's.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON for programs.")]


def run(work: Callable[[], Work], *, as_json: bool) -> None:
    """Run a verb to its end and leave with its exit code.

    The work imports its verb by itself, which takes a while: from here on Ctrl-C is heard.

    Raises:
        typer.Exit: always, with the code.
    """
    try:
        code = asyncio.run(work())
    except RefusedError as error:
        _complain(error, as_json=as_json)
        code = error.exit_code
    except KeyboardInterrupt:
        cancelled = FailedError("cancelled", reason="CANCELLED")
        _complain(cancelled, as_json=as_json)
        code = EXIT_INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output left before the work was done.
        silence_stdout()
        code = EXIT_FAILED
    raise typer.Exit(code)


def _complain(error: RefusedError, *, as_json: bool) -> None:
    if as_json:
        write_json(
            sys.stdout,
            {
                "ok": False,
                "error": {
                    "code": "",
                    "reason": error.reason,
                    "message": error.message,
                    "hop": "",
                    "advice": "",
                },
            },
        )
    else:
        sys.stderr.write(f"sixhop: {error.message}\n")
