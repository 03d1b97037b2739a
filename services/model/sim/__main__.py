"""Runs the simulator as a process of its own, until SIGTERM or SIGINT."""

import asyncio
import importlib
import json
import signal
import sys
from pathlib import Path

from services.model.sim.config import SimSettings
from services.model.sim.faults import UnknownFaultError
from services.model.sim.manual import plain_text
from services.model.sim.script import BadScriptError
from services.model.sim.server import serving
from services.runtime.clock import MonotonicClock
from services.runtime.config import ConfigError, load_config, pod_name
from services.runtime.telemetry import REFUSED_TO_START, configure_logging, get_logger
from services.runtime.topology import SIM

EXIT_OK = 0
EXIT_CONFIG = 2
"""As every hop; their module is not imported, because it would bring gRPC with it."""
LIST_FAULTS = "--list-faults"


async def run(settings: SimSettings) -> int:
    """Serve, and tell where as one line of JSON on standard output; return the exit code."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with serving(settings, MonotonicClock()) as simulator:
        told = {
            "port": simulator.port,
            "base_url": simulator.base_url,
            "control_url": simulator.control_url,
            "seed": settings.seed,
            "model": settings.models[0] if settings.models else "sim",
        }
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()
        await stop.wait()
        sys.stdout.write(json.dumps(simulator.world.verdict()) + "\n")
        sys.stdout.flush()
    return EXIT_OK


def main(arguments: list[str]) -> int:
    """Serve as a configuration file or none says; return the exit code."""
    if LIST_FAULTS in arguments:
        sys.stdout.write(plain_text())
        return EXIT_OK
    journal = configure_logging(SIM, pod_name(SIM), "info", MonotonicClock())
    try:
        config = load_config(Path(arguments[0]) if arguments else None)
        settings = config.section(SIM, SimSettings)
        if sys.platform == "win32":
            return asyncio.run(run(settings))
        code: int = importlib.import_module("uvloop").run(run(settings))
    except (ConfigError, UnknownFaultError, BadScriptError, OSError) as error:
        get_logger().error(REFUSED_TO_START, problem=str(error))
        return EXIT_CONFIG
    finally:
        journal.flush()
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
