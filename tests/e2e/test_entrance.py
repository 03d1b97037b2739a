"""Holds the gateway to letting the whole world in only where it is told to."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.tenants.asking import put_key
from tests.ports import free_ports
from tests.processes import ROOT
from tests.requirements import requirement

TIMEOUT_S = 40.0
EVERYWHERE = {"SIXHOP_GATEWAY__HOST": "0.0.0.0"}
HTTP_ONLY = {"SIXHOP_GATEWAY__HTTP_HOST": "0.0.0.0"}


def started(folder: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Start a gateway in a folder, and return how it ended."""
    port, http_port = free_ports(2)
    return subprocess.run(
        [sys.executable, "-m", "gateway", *arguments],
        cwd=folder,
        env={
            "PYTHONPATH": f"{ROOT}:{ROOT / 'protos'}",
            "SIXHOP_GATEWAY__PORT": str(port),
            "SIXHOP_GATEWAY__HTTP_PORT": str(http_port),
            **settings,
        },
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


@requirement("tenants:loopback-only")
@pytest.mark.parametrize("settings", [EVERYWHERE, HTTP_ONLY])
def test_a_gateway_for_everybody_refuses_to_start_without_keys(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    ended = started(tmp_path, **settings)

    assert ended.returncode == 2
    assert "sixhop key create" in ended.stderr
    assert "SIXHOP_GATEWAY__OPEN=true" in ended.stderr
    assert "hop_serving" not in ended.stderr


@requirement("tenants:loopback-only")
def test_the_check_says_so_before(tmp_path: Path) -> None:
    assert started(tmp_path, "--check", **EVERYWHERE).returncode == 1


@requirement("tenants:loopback-only")
@pytest.mark.parametrize(
    "settings",
    [
        {},
        EVERYWHERE | {"SIXHOP_GATEWAY__OPEN": "true"},
        EVERYWHERE | {"SIXHOP_GATEWAY__KEYS_FILE": "/run/secrets/that-only-the-pod-has.json"},
        EVERYWHERE
        | {
            "SIXHOP_GATEWAY__JWT__JWKS_URL": "https://issuer.test/jwks",
            "SIXHOP_GATEWAY__JWT__ISSUER": "https://issuer.test/",
            "SIXHOP_GATEWAY__JWT__AUDIENCE": "sixhop",
        },
    ],
)
def test_whoever_is_asked_or_told_to_come_may_be_let_in(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    assert started(tmp_path, "--check", **settings).returncode == 0


@requirement("tenants:loopback-only")
def test_keys_beside_the_configuration_are_enough(tmp_path: Path) -> None:
    put_key(tmp_path / ".sixhop" / "keys.json", "acme")

    assert started(tmp_path, "--check", **EVERYWHERE).returncode == 0
