"""Reads what the documentation tells people who write clients in other languages."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "grpc-clients.md"
EXAMPLES = ROOT / "examples" / "grpc"
TITLES = {"python": "Python", "typescript": "TypeScript", "go": "Go", "java": "Java"}
"""The heading of each example, by its folder."""
QUESTION = "Which category grew most last quarter?"
"""What the page asks everywhere."""
ADDRESS = "127.0.0.1:7400"
"""Where the page has the gateway."""


@dataclass(frozen=True, slots=True)
class Section:
    """Holds what the page says under one heading."""

    commands: tuple[str, ...]
    """Its lines for a shell; the last one of an example asks."""
    quotes: tuple[str, ...]
    """Its blocks of code."""
    files: tuple[str, ...]
    """What it links to, as paths from the page."""


def section(title: str) -> Section:
    """Return what stands under a heading of the page."""
    text = PAGE.read_text(encoding="utf-8").partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    lines = [line for kind, block in blocks if kind == "sh" for line in block.splitlines()]
    quotes = [block for kind, block in blocks if kind != "sh"]
    return Section(tuple(lines), tuple(quotes), tuple(re.findall(r"\]\(([^)]+)\)", text)))
