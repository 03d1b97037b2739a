"""Declares the settings of the embedded language model."""

from ipaddress import ip_address
from pathlib import Path

from pydantic import Field, SecretStr, field_validator

from services.runtime.config import HopSettings

MODEL_NAME = "SmolLM2-135M-Instruct"
MAX_OUTPUT_TOKENS = 128
"""It writes tens of tokens a second; more would outlive every deadline."""
WINDOW = 2048
"""What prompt and answer of one request may have together."""
LANGUAGES = ("en",)
"""What it writes at all; in any other language it writes noise."""


class LlmSettings(HopSettings):
    """Says which weights the embedded model uses, and where it listens."""

    api_key: SecretStr = SecretStr("")
    """What callers must show; `sixhop up` makes one for each start and gives it to both sides."""
    weights: Path | None = None
    """A GGUF file to use instead of the packaged SmolLM2-135M-Instruct."""
    model: str = ""
    """The model's name on the wire; empty takes the packaged model's, or the file's."""
    context: int = Field(default=2 * WINDOW, ge=256, le=1_048_576)
    """The tokens of all requests at a time; each of them gets its equal part."""
    parallel: int = Field(default=2, ge=1, le=64)
    """How many requests are worked on at a time; more wait in order. Each halves the pace of
    all."""
    threads: int = Field(default=1, ge=1, le=256)
    """How many threads compute; on a busy two-core machine a second one only spins."""

    @field_validator("host")
    @classmethod
    def _loopback_only(cls, host: str) -> str:
        if host != "localhost" and not _is_loopback(host):
            raise ValueError("the embedded model listens on loopback only, such as 127.0.0.1")
        return host


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
