"""Runs the example clients in other languages, as the documentation says it, against a suite."""

import asyncio
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest
import pytest_asyncio

from services.runtime.topology import GATEWAY, MODEL
from tests.e2e.conftest import QUIET
from tests.e2e.simulators import PRIMARY_MODEL, provider_settings, simulated
from tests.e2e.suite import running_suite
from tests.requirements import requirement
from tests.strangers import ADDRESS, EXAMPLES, QUESTION, ROOT, TITLES, section

pytestmark = pytest.mark.timeout(400)

BUILD_TIMEOUT_S = 300.0
"""Far above the half minute that all take together, for machines that download at leisure."""
CALL_TIMEOUT_S = 40.0
"""Two calls with ten seconds each, and the start of a language's runtime."""
DEADLINE_S = 10.0 * 1.04 + 0.005
"""What arrives at most of the ten seconds that every client gives, for gRPC rounds them up on the
wire. Without a deadline the gateway would give three times as much."""
REFUSED = "Hello? [sim: 503]"
"""Asked so, the simulated provider refuses."""

Outcome = subprocess.CompletedProcess[str]


def run(command: Sequence[str], folder: Path, timeout_s: float, **environment: str) -> Outcome:
    """Run a command as a developer would whose environment is active."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    path = f"{Path(sys.executable).parent}:{own['PATH']}"
    return subprocess.run(
        command,
        cwd=folder,
        env={**own, "PATH": path, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout_s,
    )


class Checkout:
    """Is what a stranger has: the protos and the examples, and nothing that runs the suite."""

    def __init__(self, folder: Path) -> None:
        """Copy both into a folder, and build every example there."""
        self._examples = folder / EXAMPLES.relative_to(ROOT)
        code = shutil.ignore_patterns("*.py", "*.pyi", "__pycache__")
        shutil.copytree(ROOT / "protos", folder / "protos", ignore=code)
        built = shutil.ignore_patterns("build", "generated", "node_modules", "venv", "sixhop")
        shutil.copytree(EXAMPLES, self._examples, ignore=built)
        with ThreadPoolExecutor() as pool:
            self._builds = dict(zip(TITLES, pool.map(self._build, TITLES), strict=True))

    def _build(self, language: str) -> Outcome:
        script = "\n".join(("set -e", *section(TITLES[language]).commands[:-1]))
        return run(["sh", "-c", script], self._examples / language, BUILD_TIMEOUT_S)

    def ask(self, language: str, question: str, **environment: str) -> str:
        """Run the command of a language that asks, with a question; return what it prints."""
        build = self._builds[language]
        assert build.returncode == 0, (
            f"the {language} example cannot be built; `make test` installs what it takes on "
            f"Debian: {build.stdout[-2000:]}{build.stderr[-2000:]}"
        )
        command = shlex.split(section(TITLES[language]).commands[-1])
        command[command.index(QUESTION)] = question
        outcome = run(command, self._examples / language, CALL_TIMEOUT_S, **environment)
        assert outcome.returncode == 0, outcome.stdout + outcome.stderr
        return outcome.stdout


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    """Return a checkout in which the examples are built."""
    folder = tmp_path_factory.mktemp("checkout")
    yield Checkout(folder)
    # Whole folders of packages, which pytest would keep for three runs.
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a suite whose model is simulated."""
    folder = tmp_path_factory.mktemp("strangers")
    with simulated(folder, PRIMARY_MODEL, 1) as model:
        settings = {**QUIET, **provider_settings(MODEL, model)}
        with running_suite(folder, **settings) as suite:
            yield suite.address(GATEWAY)


@requirement("strangers:examples")
@pytest.mark.parametrize("language", TITLES)
def test_an_example_has_the_answer_at_once_and_as_a_stream_with_its_degraded_part(
    checkout: Checkout, address: str, language: str
) -> None:
    printed = checkout.ask(language, QUESTION, SIXHOP_ADDRESS=address)

    whole = printed.partition("\ndegraded: ")[0]
    assert whole.startswith("Electronics grew most: ")
    assert printed.count(whole) == 2
    assert len(re.findall("^degraded: prose by template: .", printed, re.MULTILINE)) == 2
    assert printed.endswith("\nfinished: reports, written by template\n")


@requirement("strangers:examples")
@pytest.mark.parametrize("language", TITLES)
def test_an_example_reads_the_reason_the_hop_and_the_time_left_of_both_errors(
    checkout: Checkout, address: str, language: str
) -> None:
    printed = checkout.ask(language, REFUSED, SIXHOP_ADDRESS=address)

    failed = r"failed: DEPENDENCY_FAILED, hop llm, remainingMs (\d+): the provider failed"
    left_ms = [int(found) for found in re.findall(failed, printed)]
    assert len(left_ms) == 2, printed
    assert 0 < min(left_ms) <= max(left_ms) <= DEADLINE_S * 1000


@dataclass(slots=True)
class Recorder:
    """Notes what calls bring with them, and serves none."""

    address: str = ""
    authorizations: list[object] = field(default_factory=list)
    remaining_s: list[float] = field(default_factory=list)

    async def answer(self, request: bytes, context: "grpc.aio.ServicerContext[Any, Any]") -> bytes:
        """Note a call, and refuse it as a server does that knows no ErrorInfo."""
        metadata = dict(context.invocation_metadata() or ())
        self.authorizations.append(metadata.get("authorization"))
        self.remaining_s.append(context.time_remaining() or 0.0)
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, "only records")


@pytest_asyncio.fixture
async def recorder() -> AsyncIterator[Recorder]:
    """Return a door that only records."""
    found = Recorder()
    methods: Any = {
        name: grpc.unary_unary_rpc_method_handler(found.answer) for name in ("Ask", "Run")
    }
    server = grpc.aio.server()
    service = "sixhop.gateway.v1.GatewayService"
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, methods),))
    found.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    yield found
    await server.stop(None)


@requirement("strangers:keys", "strangers:examples")
@pytest.mark.parametrize(
    ("environment", "expected"),
    [({"SIXHOP_API_KEY": "the-key"}, "Bearer the-key"), ({}, None)],
    ids=["key", "none"],
)
@pytest.mark.parametrize("language", TITLES)
async def test_an_example_sends_its_deadline_and_a_key_where_it_has_one(
    checkout: Checkout,
    recorder: Recorder,
    language: str,
    environment: dict[str, str],
    expected: str | None,
) -> None:
    settings = {"SIXHOP_ADDRESS": recorder.address, **environment}
    printed = await asyncio.to_thread(checkout.ask, language, QUESTION, **settings)

    assert recorder.authorizations == [expected, expected]
    assert 0 < min(recorder.remaining_s) <= max(recorder.remaining_s) <= DEADLINE_S
    alike = "failed: unimplemented, hop none, remainingms unknown: only records\n"
    assert printed.lower() == alike * 2


def without_code(tool: str) -> list[list[str]]:
    """Return the page's commands with a tool that knows no protos."""
    lines = map(shlex.split, section("Without any code").commands)
    return [line for line in lines if line[: len(tool.split())] == tool.split()]


@requirement("strangers:reflection")
@pytest.mark.parametrize("version", ["grpc-v1", "grpc-v1alpha"])
def test_a_client_without_protos_lists_the_methods_and_asks(
    tmp_path: Path, address: str, version: str
) -> None:
    listing, asking = (
        [part.replace(ADDRESS, address) for part in (*command, "--reflect-protocol", version)]
        for command in without_code("buf curl")
    )

    methods = run(listing, tmp_path, CALL_TIMEOUT_S)
    answer = run(asking, tmp_path, CALL_TIMEOUT_S)

    service = "sixhop.gateway.v1.GatewayService"
    assert {f"{service}/Ask", f"{service}/Run"} <= set(methods.stdout.split()), methods
    assert '"text": "Electronics grew most: ' in answer.stdout, answer


@requirement("strangers:reflection")
def test_both_clients_without_protos_are_told_to_ask_the_same() -> None:
    (_, grpcurl), (_, buf) = without_code("grpcurl"), without_code("buf curl")

    assert grpcurl[grpcurl.index("-d") + 1] == buf[buf.index("-d") + 1]
    assert f"http://{grpcurl[-2]}/{grpcurl[-1]}" == buf[-1]
    assert grpcurl[-2] == ADDRESS
