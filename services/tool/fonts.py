"""Knows the font files of reports and charts."""

import unicodedata
from collections.abc import Container
from pathlib import Path

FONTS_DIR = Path(__file__).parent / "fonts"
REGULAR = FONTS_DIR / "SixhopSans-Regular.ttf"
BOLD = FONTS_DIR / "SixhopSans-Bold.ttf"

UNKNOWN_CHARACTER = "□"


def printable(text: str, characters: Container[int]) -> str:
    """Return a text in which every character can be printed.

    Control characters go; what the font lacks, such as emoji, becomes a box, so that a reader
    sees that something is missing.

    Args:
        text: any text; line ends are kept.
        characters: the code points that the font has.
    """
    composed = unicodedata.normalize("NFC", text).replace("\t", " ").replace("\r\n", "\n")
    kept = (c for c in composed if c == "\n" or unicodedata.category(c) not in ("Cc", "Cf", "Mn"))
    return "".join(c if c == "\n" or ord(c) in characters else UNKNOWN_CHARACTER for c in kept)
