"""Makes the environment of the image by the Dockerfile's own steps, and starts hops from it.

No engine is needed: what the stage that builds copies is copied, and what it runs is run, into
folders of this test.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from grpc_health.v1 import health_pb2
from grpc_health.v1.health_pb2_grpc import HealthStub

from services.runtime.client import open_channel
from services.runtime.launch import AS
from services.runtime.topology import DEPLOYMENTS, GATEWAY, HOPS, TOOL
from tests.ports import free_port
from tests.processes import ROOT, SHARED, STOP_TIMEOUT_S
from tests.requirements import requirement

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

DOCKERFILE = (ROOT / "k8s/Dockerfile").read_text(encoding="utf-8")
STAGES = re.split(r"^FROM ", DOCKERFILE, flags=re.MULTILINE)[1:]
CONFIG = ROOT / "k8s/base/sixhop.toml"
BUILD_TIMEOUT_S = 240.0
START_TIMEOUT_S = 60.0


def steps(stage: str, instruction: str) -> list[str]:
    """Return what stands behind an instruction of a stage, each in one line."""
    return re.findall(rf"^{instruction} (.+)$", stage.replace("\\\n", ""), flags=re.MULTILINE)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the environment that the image would have, made of nothing but what it copies."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("opt") / "sixhop"
    for step in steps(STAGES[0], "COPY"):
        *names, place = step.split()
        for name in names:
            _copy(ROOT / name, source / place / (name if place == "./" else ""))
    (command,) = steps(STAGES[0], "RUN")
    assert " /opt/sixhop " in command
    done = subprocess.run(
        ["/bin/sh", "-c", command.replace("/opt/sixhop", str(target))],
        cwd=source,
        env=_bare(Path(sys.executable).parent) | _network(),
        capture_output=True,
        text=True,
        timeout=BUILD_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    yield target
    shutil.rmtree(target)


def _copy(source: Path, place: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, place, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, place)


def _bare(folder: Path) -> dict[str, str]:
    """Return an environment in which only what is in a folder is found."""
    return {"PATH": f"{folder}:/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}


def _network() -> dict[str, str]:
    """Return how this machine reaches where packages are, and where it keeps them."""
    kept = ("HOME", "XDG_CACHE_HOME", "PIP_", "UV_", "SSL_", "HTTP_", "HTTPS_", "NO_PROXY")
    return {key: text for key, text in os.environ.items() if key.upper().startswith(kept)}


def modules() -> list[Sequence[str]]:
    """Return what each process of the suite is started by."""
    hops = [(GATEWAY if hop == GATEWAY else f"services.{hop}",) for hop in HOPS]
    return [*hops, *((f"services.{of}", AS + name) for name, of in DEPLOYMENTS.items())]


@requirement("cluster:image")
def test_every_hop_takes_the_configuration_of_the_cluster(image: Path) -> None:
    for module in modules():
        name = module[-1].removeprefix(AS).rpartition(".")[2].upper()
        done = subprocess.run(
            [image / "bin/python", "-m", *module, "--check", str(CONFIG)],
            cwd="/",
            env=_bare(image / "bin")
            | {f"SIXHOP_{name}__HOST": "0.0.0.0", "SIXHOP_OPERATOR__KEY": "x"}
            | {f"SIXHOP_{each}__API_KEY": "x" for each in ("MODEL", "MODEL_BACKUP")},
            capture_output=True,
            text=True,
            timeout=START_TIMEOUT_S,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@contextmanager
def started(image: Path, port: int, log: Path) -> Iterator[None]:
    """Run the tool hop from the environment while the block runs; it has to end well."""
    settings = {"SIXHOP_TOOL__HOST": "127.0.0.1", "SIXHOP_TOOL__PORT": str(port)}
    with log.open("wb") as target:
        hop = subprocess.Popen(
            [image / "bin/python", "-m", f"services.{TOOL}"],
            cwd="/",
            env=_bare(image / "bin") | settings,
            stdin=subprocess.DEVNULL,
            stdout=target,
            stderr=target,
        )
    SHARED.add(hop.pid)
    try:
        yield
        hop.terminate()
        assert hop.wait(STOP_TIMEOUT_S) == 0
    finally:
        hop.kill()
        hop.wait(STOP_TIMEOUT_S)
        SHARED.discard(hop.pid)


@requirement("cluster:image")
async def test_a_hop_starts_from_it_and_is_ready(image: Path, tmp_path: Path) -> None:
    port = free_port()
    with started(image, port, tmp_path / "log"):
        async with open_channel(f"127.0.0.1:{port}") as channel:
            request = health_pb2.HealthCheckRequest(service="readiness")
            stub: Any = HealthStub(channel)
            answer = await stub.Check(request, timeout=START_TIMEOUT_S, wait_for_ready=True)

    assert answer.status == health_pb2.HealthCheckResponse.SERVING


@requirement("cluster:image")
def test_the_command_of_the_suite_is_in_it(image: Path) -> None:
    done = subprocess.run(
        [image / "bin/sixhop", "--version"],
        cwd="/",
        env=_bare(image / "bin"),
        capture_output=True,
        text=True,
        timeout=START_TIMEOUT_S,
        check=True,
    )

    assert re.fullmatch(r"\d+\.\d+\.\d+\n", done.stdout)


@requirement("cluster:image")
def test_the_image_begins_at_a_digest_and_runs_as_its_pods_do() -> None:
    pod = yaml.safe_load((ROOT / "k8s/base/pod/pod.yaml").read_text(encoding="utf-8"))
    context = pod["spec"]["template"]["spec"]["securityContext"]

    assert all(stage.split()[0].endswith("@${PYTHON_DIGEST}") for stage in STAGES)
    assert not re.search(r"^ARG PYTHON_DIGEST=", DOCKERFILE, flags=re.MULTILINE)
    (user,) = steps(STAGES[-1], "USER")
    assert user == f"{context['runAsUser']}:{context['runAsGroup']}"
    assert steps(STAGES[-1], "HEALTHCHECK") == ["NONE"]


@requirement("cluster:image")
def test_nothing_is_in_the_context_but_what_is_copied() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()

    kept = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    copied = {name for step in steps(STAGES[0], "COPY") for name in step.split()[:-1]}
    assert "*" in ignored
    assert kept == copied
