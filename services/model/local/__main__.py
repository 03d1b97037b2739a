"""Runs the embedded language model as a process of its own, until SIGTERM or SIGINT."""

import os
import signal
import sys
from pathlib import Path

from services.model.local.config import LlmSettings
from services.model.local.engine import start_engine
from services.model.local.weights import find_weights
from services.runtime.clock import MonotonicClock
from services.runtime.config import ConfigError, load_config, pod_name
from services.runtime.telemetry import (
    HOP_SERVING,
    HOP_STOPPED,
    REFUSED_TO_START,
    configure_logging,
    get_logger,
)
from services.runtime.topology import LLM

EXIT_OK = 0
EXIT_CONFIG = 2
"""As every hop; their module is not imported, because it would bring gRPC with it."""
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def main(arguments: list[str]) -> int:
    """Serve the model as a configuration file or none says; return the process's exit code."""
    journal = configure_logging(LLM, pod_name(LLM), "info", MonotonicClock())
    log = get_logger()
    # Before any thread is there, so that none of the engine's takes them.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        config = load_config(Path(arguments[0]) if arguments else None)
        settings = config.section(LLM, LlmSettings)
        if not settings.api_key.get_secret_value():
            raise ConfigError(
                "llm.api_key is empty; give SIXHOP_LLM__API_KEY and SIXHOP_MODEL__API_KEY one value"
            )
        weights, model = find_weights(settings)
        engine = start_engine(settings, config.port(LLM), weights, model)
    except ConfigError as error:
        log.error(REFUSED_TO_START, problem=str(error))
        return EXIT_CONFIG
    finally:
        journal.flush()
    log.info(HOP_SERVING, address=config.address(LLM), model=model)
    journal.flush()
    signal.sigwait(STOP_SIGNALS)
    log.info(HOP_STOPPED)
    journal.flush()
    del engine
    return EXIT_OK


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    # The engine's threads know no end of their own.
    os._exit(code)
