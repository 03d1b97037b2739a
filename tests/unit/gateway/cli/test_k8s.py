"""Tests the verb `k8s render`."""

import shutil
from pathlib import Path

import pytest

from gateway.cli import k8s
from gateway.cli.problem import EXIT_FAILED, EXIT_OK, RefusedError

SHIPPED = Path(__file__).resolve().parents[4] / "k8s"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a copy of the manifests that ship."""
    return shutil.copytree(SHIPPED, tmp_path / "k8s")


async def test_what_differs_is_shown_and_then_written(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = folder / "base/sixhop.toml"
    text = settings.read_text(encoding="utf-8")
    settings.write_text(f"{text}\n[calls.tool]\nstep_timeout_s = 19\n", encoding="utf-8")

    assert await k8s.render(folder, None, check_only=True) == EXIT_FAILED
    shown = capsys.readouterr()
    assert "-    timeout: 20s" in shown.out
    assert "sixhop k8s render --output" in shown.err
    settings.write_text(text.replace('host = "tool"', 'host = "tool"\nport = 9000'))
    assert await k8s.render(folder, None, check_only=False) == EXIT_OK
    assert f"{folder}/base/tool/generated.yaml\n" in capsys.readouterr().out
    assert await k8s.render(folder, None, check_only=True) == EXIT_OK
    assert capsys.readouterr() == ("", "")


async def test_another_configuration_can_be_named(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text("[tool]\nport = 9000\n", encoding="utf-8")

    assert await k8s.render(folder, other, check_only=True) == EXIT_FAILED
    assert await k8s.render(folder, None, check_only=True) == EXIT_OK


@pytest.mark.parametrize("text", ["[deadline]\nshar = 0.5\n", "[too]\n", "?", None])
async def test_a_configuration_that_cannot_be_read_is_refused(
    text: str | None, folder: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.toml"
    if text is not None:
        other.write_text(text, encoding="utf-8")

    with pytest.raises(RefusedError):
        await k8s.render(folder, other, check_only=False)


async def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="does not exist"):
        await k8s.render(tmp_path / "nowhere", None, check_only=False)
