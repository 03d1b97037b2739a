"""Holds the launcher to setting the environment first, and to handing on what it was told."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.runtime import launch as launch_module
from services.runtime import process
from services.runtime.config import HopSettings
from services.runtime.launch import GRPC_EXPERIMENTS, launch

SETTINGS = "services.runtime.config:HopSettings"
ENTRY = "gateway.service:open_hop"


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """Launch a hop whose process does nothing but remember how it was run."""
    monkeypatch.setattr(os, "environ", {"SIXHOP_PLAIN_LOOP": "1"})
    seen: dict[str, Any] = {}

    async def run(name: str, open_hop: object, settings: object, **options: Any) -> int:
        seen.update(options, name=name, open_hop=open_hop, settings=settings)
        return 2

    monkeypatch.setattr(process, "run", run)

    def go(*arguments: str, **environ: str) -> dict[str, Any]:
        os.environ.update(environ)
        monkeypatch.setattr(sys, "argv", ["hop", *arguments])
        with pytest.raises(SystemExit) as caught:
            launch("gateway", ENTRY, SETTINGS)
        return seen | {"code": caught.value.code}

    return go


def test_a_hop_runs_with_its_room_and_ends_with_its_code(
    launched: Callable[..., dict[str, Any]],
) -> None:
    seen = launched()

    assert (seen["name"], seen["settings"], seen["code"]) == ("gateway", HopSettings, 2)
    assert seen["open_hop"].__name__ == "open_hop"
    assert (seen["config_path"], seen["check_only"]) == (None, False)


def test_a_file_and_a_check_may_be_asked_for(launched: Callable[..., dict[str, Any]]) -> None:
    seen = launched("--check", "other.toml")

    assert (seen["config_path"], seen["check_only"]) == (Path("other.toml"), True)


def test_one_thread_embeds_and_grpc_keeps_quiet(launched: Callable[..., dict[str, Any]]) -> None:
    launched()

    assert os.environ["OMP_NUM_THREADS"] == "1"
    assert os.environ["GRPC_VERBOSITY"] == "ERROR"
    assert "GRPC_EXPERIMENTS" not in os.environ, "the plain loop takes grpc as it is"


def test_the_faster_loop_takes_grpc_without_its_event_engine(
    launched: Callable[..., dict[str, Any]],
) -> None:
    launched(SIXHOP_PLAIN_LOOP="0")

    assert os.environ["GRPC_EXPERIMENTS"] == GRPC_EXPERIMENTS


def test_what_the_user_has_set_stays(launched: Callable[..., dict[str, Any]]) -> None:
    launched(SIXHOP_PLAIN_LOOP="0", GRPC_EXPERIMENTS="mine", OMP_NUM_THREADS="4")

    assert (os.environ["GRPC_EXPERIMENTS"], os.environ["OMP_NUM_THREADS"]) == ("mine", "4")


def test_a_hop_may_run_under_the_name_of_another_deployment(
    launched: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch_module, "DEPLOYMENTS", {"porch": "gateway", "model_backup": "model"})

    assert launched("--as=porch")["name"] == "porch"
    assert launched()["name"] == "gateway"


def test_a_name_that_is_not_of_this_hop_is_refused(
    launched: Callable[..., dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    seen = launched("--as=model_backup")

    assert seen == {"code": 2}
    assert capsys.readouterr().err == "--as=model_backup: gateway runs as gateway\n"
