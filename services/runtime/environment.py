"""Reads settings from environment variables, and refuses those of ours that mean nothing."""

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from services.runtime.sections import ConfigError
from services.runtime.setting_text import PREFIX

CONFIG_VARIABLE = f"{PREFIX}CONFIG"
"""Names the configuration file."""
PLAIN_LOOP_VARIABLE = f"{PREFIX}PLAIN_LOOP"
"""Set to 1 to run on asyncio's own loop and gRPC's defaults."""
API_KEY_VARIABLE = f"{PREFIX}API_KEY"
"""What `sixhop ask` shows to the gateway to be known by."""
VARIABLES = (CONFIG_VARIABLE, PLAIN_LOOP_VARIABLE, API_KEY_VARIABLE)
"""The variables that are no settings."""
SEPARATOR = "__"
"""Stands between a section, the tables in it and a setting; their names have single underscores."""
_CLOSE = 0.75
"""How much of a section's name must be right for it to be meant."""
_IPV6 = re.compile(r"\[[0-9a-fA-F]*:[0-9a-fA-F:.]*\]")
"""An address, which looks like a list and is none."""
_SERVICE = re.compile(r"[A-Z0-9_]+_SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)")
_PORT = re.compile(r"[A-Z0-9_]+_PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?")
_ADDRESS = re.compile(r"(tcp|udp|sctp)://\S+")


def overlay(
    raw: dict[str, Any], environ: Mapping[str, str], tables: Mapping[str, Sequence[str]]
) -> None:
    """Lay what the environment says over what a file has said.

    Args:
        raw: the sections, which are changed.
        environ: the environment; what is not ours is passed over.
        tables: the sections that there are, each with the tables in it.

    Raises:
        ConfigError: a variable of ours means nothing, or what it says cannot be read.
    """
    for variable, value in environ.items():
        if not variable.startswith(PREFIX) or variable in VARIABLES:
            continue
        if SEPARATOR not in variable:
            if not _of_a_cluster(variable, environ):
                raise ConfigError(f"{variable} is not a setting{_meant(variable, tables)}")
            continue
        *path, key = variable.removeprefix(PREFIX).lower().split(SEPARATOR)
        table = raw
        for name in path:
            table = table.setdefault(name, {})
            if not isinstance(table, dict):
                raise ConfigError(f"{variable}: {name} is a value, not a table")
        table[key] = _parsed(variable, value)


def _of_a_cluster(variable: str, environ: Mapping[str, str]) -> bool:
    """Tell whether Kubernetes has set a variable: it tells each pod of every service so.

    For a service `sixhop-tool` there are `SIXHOP_TOOL_SERVICE_HOST` and `SIXHOP_TOOL_PORT`, which
    is an address and not a number, and some for each port of it.
    """
    name = variable.removeprefix(PREFIX)
    if _SERVICE.fullmatch(name):
        service = name.partition("_SERVICE_")[0]
        return {f"{PREFIX}{service}_SERVICE_{end}" for end in ("HOST", "PORT")} <= set(environ)
    if not _PORT.fullmatch(name):
        return False
    service = re.split(r"_PORT(?=_\d|$)", name)[0]
    return bool(_ADDRESS.fullmatch(environ.get(f"{PREFIX}{service}_PORT", "")))


def _meant(variable: str, tables: Mapping[str, Sequence[str]]) -> str:
    """Return the end of a sentence that refuses a variable: the one that is meant, if any."""
    name = variable.removeprefix(PREFIX)
    found = _reading(name.lower().split("_"), tables)
    if not found:
        others = [other.removeprefix(PREFIX) for other in VARIABLES]
        found = "".join(difflib.get_close_matches(name, others, n=1))
    if not found:
        return (
            f"; a setting is written {PREFIX}SECTION{SEPARATOR}KEY, with two underscores; the "
            f"sections are {', '.join(tables)}"
        )
    return f"; did you mean {PREFIX}{found}?"


def _reading(words: Sequence[str], tables: Mapping[str, Sequence[str]]) -> str:
    """Return the setting that words mean whose underscores are all the same; empty if none."""
    counts = range(len(words) - 1, 0, -1)
    for cutoff in (1.0, _CLOSE):
        for count in counts:
            name = "_".join(words[:count])
            for section in difflib.get_close_matches(name, tables, n=1, cutoff=cutoff):
                return SEPARATOR.join([section, *_split(words[count:], tables[section])]).upper()
    return ""


def _split(words: Sequence[str], tables: Sequence[str]) -> list[str]:
    """Return the table inside a section, if one is named, and the setting."""
    for table in sorted(tables, key=len, reverse=True):
        parts = table.split("_")
        if list(words[: len(parts)]) == parts and len(words) > len(parts):
            return [table, "_".join(words[len(parts) :])]
    return ["_".join(words)]


def _parsed(variable: str, value: str) -> Any:
    """Return lists and tables, written as JSON, as such; everything else as the text it is."""
    if not value.startswith(("[", "{")) or _IPV6.match(value):
        return value
    try:
        return json.loads(value)
    except json.JSONDecodeError as error:
        raise ConfigError(
            f'{variable} looks like JSON and is none: {error}; write ["a", "b"], or a,b'
        ) from None
