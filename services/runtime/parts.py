"""Names, in the metadata of a call, the part of a hop that it is for.

One hop may run as several deployments of the same code, so that what is heavy or sick among its
tools or agents has pods of its own. The mesh leads each call to its part by these headers; a hop
never looks at them.
"""

import re

TOOL_GROUP_KEY = "x-sixhop-tool-group"
"""The group of the tool that is to be executed, as the tool declares it."""
AGENT_KEY = "x-sixhop-agent"
"""The agent that is to run."""

_VALUE = re.compile(r"[\x21-\x7e]{1,128}")

Pairs = tuple[tuple[str, str], ...]


def part(key: str, name: str) -> Pairs:
    """Return the metadata that names a part; none for a name that cannot travel so."""
    return ((key, name),) if _VALUE.fullmatch(name) else ()
