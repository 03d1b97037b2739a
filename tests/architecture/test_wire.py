"""Holds the protos to what was promised to clients that others have generated from them."""

import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from tests.architecture.sources import PROTOS, ROOT
from tests.making import commands
from tests.requirements import requirement

BASELINE = PROTOS / "baseline.binpb"
"""What was promised; `make proto-baseline` writes it."""
GATEWAY = Path("sixhop/gateway/v1/gateway.proto")
RUN = Path("sixhop/type/v1/run.proto")


def compared(protos: Path) -> "subprocess.CompletedProcess[str]":
    """Compare protos with what was promised, as `make check` does."""
    buf = Path(sysconfig.get_path("scripts")) / "buf"
    return subprocess.run(
        [buf, "breaking", protos, "--against", BASELINE],
        capture_output=True,
        text=True,
        check=False,
        timeout=15,
    )


def changed(folder: Path, proto: Path, old: str, new: str) -> Path:
    """Return a copy of the protos in which one text is another."""
    copy = folder / "protos"
    shutil.copytree(PROTOS, copy, ignore=shutil.ignore_patterns("*.py", "*.pyi", "__pycache__"))
    text = (copy / proto).read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{proto} has changed: {old!r} is to be there once"
    (copy / proto).write_text(text.replace(old, new), encoding="utf-8")
    return copy


@requirement("strangers:nothing-breaks")
def test_the_protos_hold_all_that_was_promised() -> None:
    outcome = compared(PROTOS)

    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


@requirement("strangers:nothing-breaks")
@pytest.mark.parametrize(
    ("proto", "old", "new", "says"),
    [
        (GATEWAY, "  rpc Ask(AskRequest) returns (AskResponse);", "", '"Ask"'),
        (GATEWAY, "returns (stream RunResponse)", "returns (RunResponse)", '"Run"'),
        (GATEWAY, "int64 sequence = 1;", "int64 number = 1;", '"sequence"'),
        (RUN, "    TextDelta text_delta = 6;", "    TextDelta text_delta = 66;", '"text_delta"'),
        (RUN, "  string mechanism = 1;", "  int32 mechanism = 1;", "type"),
        (RUN, "  string mechanism = 1;", '  reserved 1;\n  reserved "mechanism";', '"mechanism"'),
        (RUN, "  STEP_STATE_SKIPPED = 3;", "", '"StepState"'),
    ],
    ids=["method", "streaming", "name", "number", "type", "reserved", "value"],
)
def test_a_change_that_breaks_clients_is_refused(
    tmp_path: Path, proto: Path, old: str, new: str, says: str
) -> None:
    outcome = compared(changed(tmp_path, proto, old, new))

    assert outcome.returncode != 0
    assert proto.name in outcome.stdout
    assert says in outcome.stdout


@requirement("strangers:nothing-breaks")
@pytest.mark.parametrize(
    ("proto", "old", "new"),
    [
        (RUN, "  string mechanism = 1;", "  string mechanism = 1;\n  string hue = 900;"),
        (RUN, "    Thinking thinking = 5;", "    Thinking thinking = 5;\n    Thinking more = 900;"),
        (
            GATEWAY,
            "  rpc Ask(AskRequest) returns (AskResponse);",
            "  rpc Ask(AskRequest) returns (AskResponse);\n  rpc Tell(Told) returns (Told);\n}\n"
            "message Told {\n  string text = 1;",
        ),
        (RUN, "  STEP_STATE_SKIPPED = 3;", "  STEP_STATE_SKIPPED = 3;\n  STEP_STATE_LATE = 900;"),
    ],
    ids=["field", "event", "method", "value"],
)
def test_an_addition_passes(tmp_path: Path, proto: Path, old: str, new: str) -> None:
    outcome = compared(changed(tmp_path, proto, old, new))

    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


@requirement("strangers:nothing-breaks")
def test_every_check_compares_with_what_was_promised() -> None:
    against = f"buf breaking protos --against {BASELINE.relative_to(ROOT)}"

    assert any(command.endswith(against) for command in commands("check"))
