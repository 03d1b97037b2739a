"""Starts the llama.cpp server inside this process."""

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from services.model.local.config import LlmSettings
from services.model.local.weights import MISSING
from services.runtime.config import ConfigError


def start_engine(settings: LlmSettings, port: int, weights: Path, model: str) -> object:
    """Serve the model over HTTP until the process ends; return what keeps it alive.

    It answers when this returns. There is no way to stop it but to end the process.

    Raises:
        ConfigError: the engine is missing, cannot read the weights, or cannot have the port.
    """
    try:
        # Imported here, because it is there only where the embedded model is installed.
        from xllamacpp import CommonParams, Server
    except ImportError as error:
        raise ConfigError(MISSING.format(what=f"xllamacpp: {error}")) from None
    _require_free(settings.host, port)
    parameters = _parameters(CommonParams, settings, port, weights, model)
    try:
        return Server(parameters)
    except RuntimeError as error:
        raise ConfigError(
            f"the embedded model does not start with {weights}: {error} Name other weights with "
            "SIXHOP_LLM__WEIGHTS"
        ) from None


def _require_free(host: str, port: int) -> None:
    """Refuse a port that is taken: the engine itself does not tell that from other failures."""
    try:
        with socket.create_server((host, port)):
            pass
    except OSError as error:
        raise ConfigError(
            f"{host}:{port} cannot be had: {error.strerror}; stop the process that listens there, "
            "or set SIXHOP_LLM__PORT to a free port"
        ) from None


def _parameters(
    kind: Callable[[], Any], settings: LlmSettings, port: int, weights: Path, model: str
) -> Any:
    parameters = kind()
    parameters.model.path = str(weights)
    parameters.model_alias = {model}
    parameters.hostnames = [settings.host]
    parameters.port = port
    key = settings.api_key.get_secret_value()
    parameters.api_keys = [key] if key else []
    parameters.n_ctx = settings.context
    parameters.n_parallel = settings.parallel
    parameters.cpuparams.n_threads = settings.threads
    parameters.cpuparams_batch.n_threads = settings.threads
    # The processor only: the machine's other devices are not ours to take.
    parameters.n_gpu_layers = 0
    parameters.fit_params = False
    # Its web page, its view of running prompts, and its store of finished ones: nobody asked.
    parameters.ui = False
    parameters.endpoint_slots = False
    parameters.cache_ram_mib = 0
    # At any higher level it writes prompts into its log.
    parameters.verbosity = 0
    return parameters
