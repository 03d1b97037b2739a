"""Holds the documentation of the simulator to the code."""

import re
from pathlib import Path

import services.model.sim
from services.model.sim.manual import fault_tables, knob_tables, plain_text
from services.model.sim.verdict import CHARGES
from services.model.sim.vocabulary import FAULTS
from tests.requirements import requirement

MANUAL = Path(__file__).resolve().parents[4] / "docs" / "model-sim.md"


def between(mark: str) -> str:
    text = MANUAL.read_text(encoding="utf-8")
    return text.partition(f"<!-- {mark} -->\n")[2].partition(f"<!-- /{mark} -->")[0]


@requirement("model-sim:documented")
def test_the_tables_of_the_manual_are_those_of_the_code() -> None:
    assert between("faults") == f"{fault_tables()}\n"
    assert between("knobs") == f"{knob_tables()}\n"


@requirement("model-sim:documented")
def test_the_manual_explains_every_charge() -> None:
    text = MANUAL.read_text(encoding="utf-8")

    assert [name for name in CHARGES if f"| `{name}` |" not in text] == []


@requirement("model-sim:documented")
def test_the_package_names_every_fault() -> None:
    named = set(re.findall(r"[\w-]+", services.model.sim.__doc__ or ""))
    signs = ("reset-", "fin-")

    missing = {name for name in FAULTS if name not in named and not name.startswith(signs)}
    assert not missing


def test_the_terminal_shows_every_fault() -> None:
    lines = plain_text().splitlines()

    assert {
        name for name in FAULTS if not any(line.startswith(f"  {name} ") for line in lines)
    } == (set())
