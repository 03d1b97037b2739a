"""Looks at every overlay, and at the Dockerfile: `python -m k8s.validation [ISTIO_CRDS]`."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from k8s.validation.commands import CommandError
from k8s.validation.rendering import Rendered, overlays, render
from k8s.validation.validators import validators, whole

AT_A_TIME = 2
"""How many look at the same time; the slow ones wait for processes of their own."""


def findings(istio_crds: Path | None, environ: Mapping[str, str]) -> Iterator[str]:
    """Yield all that is found, each with who found it.

    Raises:
        CommandError: an overlay makes nothing, or somebody who looks is not there.
        OSError: the file of definitions cannot be read.
    """
    one_by_one = validators(istio_crds)
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        rendered = list(pool.map(render, overlays()))
        at_once = [(name, pool.submit(_all_of, look)) for name, look in whole(rendered, environ)]
        for overlay in rendered:
            yield from (f"kubectl: {text}" for text in overlay.findings)
            for validator in one_by_one:
                found = validator.findings(overlay.documents)
                yield from (f"{validator.name}: {text}" for text in found)
        for name, future in at_once:
            yield from (f"{name}: {text}" for text in future.result())
    names = ", ".join((*(each.name for each in one_by_one), *(name for name, _ in at_once)))
    sys.stdout.write(f"Kubernetes: {_counts(rendered)} objects, looked at by {names}\n")


def _all_of(look: Callable[[], Iterator[str]]) -> list[str]:
    return list(look())


def _counts(rendered: Sequence[Rendered]) -> str:
    return ", ".join(f"{each.name} {len(each.documents)}" for each in rendered)


def main(arguments: Sequence[str]) -> int:
    """Tell what is found.

    Returns:
        0 when nothing is, 1 when something is, 2 when nobody could look.
    """
    try:
        found = list(findings(Path(arguments[0]) if arguments else None, os.environ))
    except (CommandError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    for text in found:
        sys.stdout.write(f"{text}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
