"""Starts a suite that talks, for the clients that people have for OpenAI."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.runtime.topology import MODEL
from tests.e2e.conftest import QUIET
from tests.e2e.simulators import PRIMARY_MODEL, Simulated, provider_settings, simulated
from tests.e2e.suite import WAIT_S, Suite, eventually, running_suite

ABLE = {"SIXHOP_MODEL__TOOLS": "true", "SIXHOP_MODEL__JSON_SCHEMA": "true"}
BUILD_TIMEOUT_S = 100.0
HELLO, WORDS = "Hello", "What is it like outside? Do weather."
REFUSED = "Hello? [sim: 503]"
CUT = "Hello? [sim: reset?at_token=5]"
SILENT = "Hello? [sim: silent]"
ENDLESS = "Hello? [sim: none?tokens=2000&token_interval_s=0.02]"
TOOL: Any = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Tells it.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


def user(words: str) -> Any:
    """Return a conversation that begins."""
    return [{"role": "user", "content": words}]


def named(name: str) -> dict[str, str]:
    """Return the header that names a request."""
    return {"x-request-id": name}


@dataclass(frozen=True)
class Talk:
    """Is a suite that talks, and the provider that it asks."""

    suite: Suite
    model: Simulated

    @property
    def url(self) -> str:
        """Return where OpenAI's clients find it."""
        return f"{self.suite.url}/v1"

    async def left_after_s(self, name: str, left_ms: float) -> float:
        """Return how long after its client a request's connection to the provider was closed."""
        closed = await eventually(
            lambda: [r for r in self.model.requests(name) if r["client_left_ms"] is not None],
            WAIT_S,
            f"the provider loses the client of {name}",
        )
        return float(closed["client_left_ms"] - left_ms) / 1000


@contextmanager
def talking(folder: Path) -> Iterator[Talk]:
    """Run a suite whose model is simulated and calls tools while the block runs."""
    with simulated(folder, PRIMARY_MODEL, 1) as model:
        settings = {**QUIET, **ABLE, **provider_settings(MODEL, model)}
        with running_suite(folder, **settings) as suite:
            yield Talk(suite, model)


def run(command: Sequence[str], folder: Path | None = None) -> str:
    """Return what a command writes."""
    ran = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, check=False
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    return ran.stdout
