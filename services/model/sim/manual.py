"""Writes the tables of faults and knobs, for the terminal and for the documentation."""

from collections.abc import Iterator, Mapping
from typing import Any

from services.model.sim.faults import Fault, When
from services.model.sim.vocabulary import GROUPS
from services.runtime.config_text import field_docs

NAME_WIDTH = 26


def plain_text() -> str:
    """Return every fault and every knob, for a terminal."""
    lines: list[str] = []
    for title, entries in GROUPS.items():
        lines += [title, *(f"  {n:<{NAME_WIDTH}}{e.about}" for n, e in entries.items()), ""]
    for title, kind in KNOBS.items():
        lines += [title, *(f"  {name:<{NAME_WIDTH}}{doc}" for name, _, doc in _knobs(kind)), ""]
    return "\n".join(lines)


def fault_tables() -> str:
    """Return every fault as tables of Markdown, one for each group."""
    lines: list[str] = []
    for title, entries in GROUPS.items():
        lines += [f"### {title.capitalize()}", "", "| name | what happens |", "|---|---|"]
        lines += [f"| `{name}` | {_cell(entry.about)} |" for name, entry in entries.items()]
        lines.append("")
    return "\n".join(lines)


def knob_tables() -> str:
    """Return every knob as tables of Markdown."""
    lines: list[str] = []
    for title, kind in KNOBS.items():
        lines += [f"### {title.capitalize()}", "", "| knob | default | meaning |", "|---|---|---|"]
        lines += [
            f"| `{name}` | {_shown(value)} | {_cell(doc)} |" for name, value, doc in _knobs(kind)
        ]
        lines.append("")
    return "\n".join(lines)


KNOBS: Mapping[str, type[Any]] = {"what a fault does": Fault, "whom it meets": When}


def _knobs(kind: type[Any]) -> Iterator[tuple[str, Any, str]]:
    default = kind()
    for name, doc in field_docs(kind).items():
        yield name, getattr(default, name), " ".join(doc.split())


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value == "" else f"{value:g}" if isinstance(value, float) else str(value)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
