"""Says what is wrong with a setting, in the words in which its user has written it."""

import difflib
import json
import re
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any

PREFIX = "SIXHOP_"
"""What the name of every variable of ours begins with."""
SECRET_ENDS = ("key", "redis_url")
"""A setting whose name ends so is never shown, whatever it holds."""
_NUMBER = re.compile(r"-?\d+(\.\d+)?")


class SettingError(ValueError):
    """Refuses the value of one setting; whoever reads the section knows its full name."""

    def __init__(self, key: str, value: Any, advice: str, *, item: bool = False) -> None:
        """Take the setting and what to do.

        Args:
            key: the setting, without its section.
            value: what it was set to; an item of it, where that alone is wrong.
            advice: what to write instead, as the end of a sentence.
            item: whether `value` is an item of a list.
        """
        super().__init__(f"{key} {'has' if item else '='} {shown(value)}: {advice}")
        self.key = key
        self.value = value
        self.advice = advice
        self.item = item


def refusal(path: Sequence[str], value: Any, advice: str, *, item: bool = False) -> str:
    """Return the refusal of a value: its key, its variable, what it is and what to write instead.

    Args:
        path: the section, the tables in it, and the key.
        value: what was written; an item of it, where that alone is wrong.
        advice: what to write instead.
        item: whether `value` is an item of a list.
    """
    text = "…" if path[-1].endswith(SECRET_ENDS) else shown(value)
    return f"{key_of(path)} {'has' if item else '='} {text} ({variable_of(path)}): {advice}"


def named(path: Sequence[str]) -> str:
    """Return the name of a setting, in the file and in the environment."""
    return f"{key_of(path)} ({variable_of(path)})"


def key_of(path: Sequence[str]) -> str:
    """Return the name of a setting as it stands in the file: `[calls.tool] step_timeout_s`."""
    return f"[{'.'.join(path[:-1])}] {path[-1]}"


def variable_of(path: Sequence[str]) -> str:
    """Return the variable of a setting: `SIXHOP_CALLS__TOOL__STEP_TIMEOUT_S`."""
    return PREFIX + "__".join(path).replace(".", "__").upper()


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the end of a sentence that refuses a name: the one that is meant, or all there are."""
    known = list(known)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean {close[0]}?" if close else f"; known: {', '.join(known)}"


def shown(value: Any) -> str:
    """Return a value as a file has it; a number that the environment has as text, as a number."""
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return value
    if isinstance(value, set | frozenset):
        value = sorted(map(str, value))
    # Whatever else stands there, people are shown what they can find again.
    return json.dumps(value, ensure_ascii=False, default=str)
