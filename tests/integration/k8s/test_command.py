"""Tests how the command that looks at the manifests ends."""

from pathlib import Path

import pytest

from k8s.validation import __main__ as command
from tests.requirements import requirement

pytestmark = requirement("cluster:validated")

SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec: {ports: [{port: 80}]}\n"


@pytest.fixture
def overlay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the one file of the one overlay that is looked at, by those who look one by one."""
    folder = tmp_path / "small"
    folder.mkdir()
    (folder / "kustomization.yaml").write_text("resources: [all.yaml]\n", encoding="utf-8")
    monkeypatch.setattr(command, "overlays", lambda: [folder])
    monkeypatch.setattr(command, "whole", lambda *_: ())
    return folder / "all.yaml"


def test_nothing_found_ends_well(overlay: Path, capsys: pytest.CaptureFixture[str]) -> None:
    overlay.write_text(SERVICE, encoding="utf-8")

    assert command.main([]) == 0
    assert "small 1 objects, looked at by Kubernetes' schemas" in capsys.readouterr().out


def test_what_is_found_is_told_and_fails(overlay: Path, capsys: pytest.CaptureFixture[str]) -> None:
    overlay.write_text(SERVICE.replace("ports", "prots"), encoding="utf-8")

    assert command.main([]) == 1
    said = capsys.readouterr().out
    assert "Kubernetes' schemas: small:1 Service x: spec: " in said
    assert "'prots' was unexpected" in said


def test_whoever_cannot_look_says_why(overlay: Path, capsys: pytest.CaptureFixture[str]) -> None:
    overlay.write_text("kind: [\n", encoding="utf-8")

    assert command.main([]) == 2
    assert "kubectl kustomize" in capsys.readouterr().err
    assert command.main([str(overlay.with_name("no-definitions.yaml"))]) == 2
    assert "no-definitions.yaml" in capsys.readouterr().err
