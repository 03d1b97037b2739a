"""Runs the suite with two simulated providers, and knows what each of them truly wrote."""

import json
import socket
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from services.model.sim.asking import Ask
from services.model.sim.config import SimSettings
from services.model.sim.dialect import compose
from services.model.sim.faults import read_rule
from services.model.sim.vocabulary import FAULTS
from services.runtime.topology import HOPS, MODEL, MODEL_BACKUP
from tests.e2e.suite import START_TIMEOUT_S, Suite, running_suite, wait_until
from tests.processes import Child

TOKEN_COUNT = 12
"""How long answers are: long enough to be cut after three tokens, and soon over."""
PRIMARY_MODEL, BACKUP_MODEL = "sim-large", "sim-small"


@dataclass(frozen=True)
class Simulated:
    """Is one simulated provider, in a process of its own."""

    model: str
    seed: int
    port: int
    control_port: int

    def whole(self, question: str, rule: str = "none") -> str:
        """Return the whole answer to a question, as the seed has it; a rule may set its text."""
        ask = Ask({"messages": [{"role": "user", "content": question}]})
        settings = SimSettings(seed=self.seed, answer_tokens=TOKEN_COUNT)
        composition = compose(ask, read_rule(rule, FAULTS).fault, settings, 0)
        return str(composition.message(len(composition.deltas))["content"])

    def requests(self, run_id: str) -> list[dict[str, Any]]:
        """Return what was asked for one run, oldest first."""
        found: list[dict[str, Any]] = self.ask("GET", f"/sim/log?request_id={run_id}")["requests"]
        return found

    def idle(self, timeout_s: float) -> bool:
        """Tell whether it ends every request in time, and no client waits for it any more."""
        answer = self.ask("GET", f"/sim/wait?idle=0&timeout_s={timeout_s}")
        return int(answer["open_count"]) == 0

    def listens(self) -> bool:
        """Tell whether it takes connections."""
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def charges(self, run_ids: Collection[str]) -> list[str]:
        """Return what it charges its client with for some runs, in words."""
        conducts = self.ask("GET", "/verdict")["requests"]
        own = (conduct for conduct in conducts if conduct["request_id"] in run_ids)
        return [charge for conduct in own for charge in conduct["charges"]]

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Ask the control port; it answers while the other one refuses."""
        connection = HTTPConnection("127.0.0.1", self.control_port, timeout=10)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()


@contextmanager
def simulated(folder: Path, model: str, seed: int, **settings: str) -> Iterator[Simulated]:
    """Run a simulator while the block runs.

    Args:
        folder: where its log goes.
        model: what it is asked for, which is also its name.
        seed: what its answers come from.
        settings: more of its settings, as in the environment.
    """
    known = {
        "SEED": str(seed),
        "ANSWER_TOKENS": str(TOKEN_COUNT),
        "TTFT_MEDIAN_S": "0.03",
        "TOKEN_MEDIAN_S": "0.005",
        "PREFILL_S_PER_1K": "0",
        "LOAD_SLOWDOWN": "0",
        **settings,
    }
    environment = {f"SIXHOP_SIM__{name}": value for name, value in known.items()}
    child = Child(model, ["-m", "services.model.sim"], environment, folder)
    child.start()
    try:
        wait_until(lambda: b"\n" in child.out.read_bytes(), START_TIMEOUT_S, "the provider's port")
        told = json.loads(child.out.read_bytes().splitlines()[0])
        control_port = int(told["control_url"].rpartition(":")[2])
        yield Simulated(model, seed, told["port"], control_port)
    finally:
        child.end()


@dataclass(frozen=True)
class Rescued:
    """Is a suite whose model is simulated, and so is the one that stands in."""

    suite: Suite
    primary: Simulated
    backup: Simulated


@contextmanager
def rescued(
    folder: Path, seeds: tuple[int, int] = (1, 2), /, **environment: str
) -> Iterator[Rescued]:
    """Run a suite with a simulated provider and a well one behind it while the block runs.

    Faults are asked for by the words of a question: the second provider does not obey them.
    """
    with (
        simulated(folder, PRIMARY_MODEL, seeds[0]) as primary,
        simulated(folder, BACKUP_MODEL, seeds[1], OBEYS_WORDS="false") as backup,
    ):
        settings = {
            **provider_settings(MODEL, primary),
            **provider_settings(MODEL_BACKUP, backup),
            **environment,
        }
        with running_suite(folder, (*HOPS, MODEL_BACKUP), **settings) as suite:
            yield Rescued(suite, primary, backup)


def provider_settings(section: str, simulator: Simulated) -> dict[str, str]:
    """Return what a suite is told, as in the environment, to ask a simulator for a section."""
    prefix = f"SIXHOP_{section.upper()}__"
    return {
        f"{prefix}BASE_URL": f"http://127.0.0.1:{simulator.port}/v1",
        f"{prefix}MODEL": simulator.model,
        # The seconds left would make another prompt of every attempt, and hide that it came again.
        f"{prefix}TIME_NOTE": "never",
    }
