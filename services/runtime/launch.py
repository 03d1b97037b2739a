"""Starts a hop: sets what must be set before grpc is imported, then runs it."""

import asyncio
import importlib
import os
import sys
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from services.runtime.environment import PLAIN_LOOP_VARIABLE
from services.runtime.topology import DEPLOYMENTS

# gRPC's event engine costs a fifth of a hop's CPU under asyncio; these names belong to the
# pinned release of grpcio.
GRPC_EXPERIMENTS = (
    "-event_engine_client,-event_engine_listener,-event_engine_callback_cq,"
    "-event_engine_for_all_other_endpoints"
)
PRINT_CONFIG = "--print-config"
AS = "--as="
EXIT_USAGE = 2


def launch(
    hop: str,
    entry: str,
    settings: str,
    *,
    examine: str = "",
    sections: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Run a hop until SIGTERM or SIGINT.

    `--check` only checks its configuration, `--print-config` only prints the hop's part of it.
    `--as=NAME` runs it as one of its other deployments, with the section of that name.

    Args:
        hop: the hop's name.
        entry: `module:function` of the room's `open_hop`, imported after the environment is set.
        settings: `module:class` of the room's section of the configuration.
        examine: `module:function` that finds what only the room can, for `--check`.
        sections: more sections that the room knows, each as `module:class`, by their names.
    """
    plain = os.environ.get(PLAIN_LOOP_VARIABLE) == "1"
    if not plain:
        os.environ.setdefault("GRPC_EXPERIMENTS", GRPC_EXPERIMENTS)
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    # An embedding with two threads burns ten times the CPU of one on a busy machine.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    arguments = sys.argv[1:]
    check_only = "--check" in arguments
    name = _deployment(hop, arguments)
    paths = [Path(text) for text in arguments if not text.startswith("--")]
    if PRINT_CONFIG in arguments:
        text = importlib.import_module("services.runtime.config_text")
        kinds = {hop: settings} | dict(sections)
        sys.exit(text.write_own({k: _load(v) for k, v in kinds.items()}, *paths))
    # Imported here because grpc reads the environment when it is imported.
    process = importlib.import_module("services.runtime.process")
    work = process.run(
        name,
        _load(entry),
        _load(settings),
        config_path=paths[0] if paths else None,
        check_only=check_only,
        examine=_load(examine) if examine and check_only else None,
        make_alarm=_load("services.runtime.loop_alarm:SignalAlarm").installed,
    )
    sys.exit(_run(work, plain=plain))


def _deployment(hop: str, arguments: Sequence[str]) -> str:
    """Return the name under which a hop runs; end the process when it has no such deployment."""
    named = [text.removeprefix(AS) for text in arguments if text.startswith(AS)]
    own = [hop, *(name for name, of in DEPLOYMENTS.items() if of == hop)]
    if named and named[-1] not in own:
        sys.stderr.write(f"{AS}{named[-1]}: {hop} runs as {' or '.join(own)}\n")
        sys.exit(EXIT_USAGE)
    return named[-1] if named else hop


def _load(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


def _run(work: Coroutine[Any, Any, int], *, plain: bool) -> int:
    if plain or sys.platform == "win32":
        return asyncio.run(work)
    uvloop = importlib.import_module("uvloop")
    code: int = uvloop.run(work)
    return code
