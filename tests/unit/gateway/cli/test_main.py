"""Tests how the command ends when it is interrupted early."""

import builtins
import runpy
from typing import Any

import pytest
import typer

from gateway.cli import __main__ as command
from gateway.cli.problem import EXIT_INTERRUPTED


def interrupted(*_: object, **__: object) -> Any:
    raise KeyboardInterrupt


def test_ctrl_c_while_the_command_is_imported_ends_it_as_cancelled(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    original = builtins.__import__

    def importing(name: str, *arguments: Any) -> Any:
        return interrupted() if name == "typer" else original(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", importing)

    with pytest.raises(SystemExit) as end:
        runpy.run_path(command.__file__, run_name="imported")

    assert end.value.code == EXIT_INTERRUPTED
    assert capsys.readouterr().err == "sixhop: cancelled\n"


def test_ctrl_c_while_a_verb_is_imported_ends_it_as_cancelled(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    original = builtins.__import__

    def importing(name: str, scope: Any = None, *arguments: Any) -> Any:
        if name == "gateway.cli" and arguments[1] == ("ask",):
            interrupted()
        return original(name, scope, *arguments)

    monkeypatch.setattr(builtins, "__import__", importing)

    with pytest.raises(typer.Exit) as end:
        command.ask("how many?")

    assert end.value.exit_code == EXIT_INTERRUPTED
    assert capsys.readouterr().err == "sixhop: cancelled\n"


def test_ctrl_c_while_the_command_line_is_read_ends_the_command_as_cancelled(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    app = typer.Typer(callback=lambda: interrupted(), invoke_without_command=True)
    monkeypatch.setattr(command, "tolerate_any_text", lambda: None)
    monkeypatch.setattr(command, "app", app)
    monkeypatch.setattr("sys.argv", ["sixhop"])
    for name in ("GRPC_VERBOSITY", "GRPC_EXPERIMENTS"):
        monkeypatch.setenv(name, "")

    with pytest.raises(SystemExit) as end:
        command.main()

    assert end.value.code == EXIT_INTERRUPTED
    assert capsys.readouterr().err == "sixhop: cancelled\n"


def test_ctrl_c_outside_of_a_verb_ends_the_command_as_cancelled(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "tolerate_any_text", lambda: None)
    monkeypatch.setattr(command, "app", interrupted)
    for name in ("GRPC_VERBOSITY", "GRPC_EXPERIMENTS"):
        monkeypatch.setenv(name, "")

    with pytest.raises(SystemExit) as end:
        command.main()

    assert end.value.code == EXIT_INTERRUPTED
    assert capsys.readouterr().err == "sixhop: cancelled\n"
