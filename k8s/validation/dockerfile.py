"""Holds the Dockerfile to what is known to build small, safe images again, by hadolint."""

import json
from collections.abc import Iterator
from pathlib import Path

from k8s.validation.commands import installed, run


def findings(file: Path) -> Iterator[str]:
    """Yield what hadolint finds in a Dockerfile; what is ignored is said there, with the reason."""
    done = run(installed("hadolint"), ["--format", "json", str(file)], good=(0, 1))
    for each in json.loads(done.stdout):
        yield f"{file}:{each['line']}: {each['message']} ({each['code']})"
