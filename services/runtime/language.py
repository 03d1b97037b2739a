"""Tells the language of a text, as far as the suite speaks it."""

import re

_CHINESE = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")

LANGUAGES = ("en", "zh")


def language_of(text: str) -> str:
    """Return `zh` for a text with Chinese characters, else `en`."""
    return "zh" if _CHINESE.search(text) else "en"
