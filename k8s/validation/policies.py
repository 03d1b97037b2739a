"""Holds the pods to what is known to be safe, by checkov, with what we waive and why.

Asks nobody over the network. Checkov pins old releases of what we use ourselves, so it has an
environment of its own. Knows nothing of Istio, and checks no schema.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from k8s.validation.commands import CommandError, installed, run
from k8s.validation.rendering import Rendered

_EVERYWHERE = {
    "CKV_K8S_11": (
        "a limit of CPU stops a process in the middle of a deadline; requests share what there is, "
        "and admission bounds what a pod takes on"
    ),
    "CKV_K8S_35": (
        "settings are read from variables once, at the start; keys that change under way are files"
    ),
}
WAIVED: Mapping[str, Mapping[str, str]] = {
    "local": _EVERYWHERE
    | {
        "CKV_K8S_8": "the model beside its hop is asked by the hop alone, whose own probes tell",
        "CKV_K8S_9": "the same",
        "CKV_K8S_15": "the image was built on this machine a moment ago, and no registry has it",
        "CKV_K8S_43": "the same, so it has no digest",
    },
    "production": _EVERYWHERE,
    "staging": _EVERYWHERE
    | {"CKV_K8S_43": "its tag moves with every build, and is pulled at every start"},
}
"""By overlay the checks whose findings are borne, each with the reason."""


@dataclass(frozen=True, slots=True)
class Failed:
    """Is one check that an object does not pass."""

    overlay: str
    line: int
    resource: str
    check: str
    says: str


def findings(overlays: Sequence[Rendered]) -> Iterator[str]:
    """Yield what is found and not waived."""
    for each in failed(overlays):
        if each.check not in WAIVED.get(each.overlay, {}):
            yield (
                f"{each.overlay}:{each.line} {each.resource}: {each.says} ({each.check}); change "
                f"it, or say in {__name__} why not"
            )


def failed(overlays: Sequence[Rendered]) -> list[Failed]:
    """Return what checkov finds in overlays, of all at a time: it takes seconds to begin.

    Raises:
        CommandError: it cannot be run, or cannot read them.
    """
    with TemporaryDirectory(prefix="sixhop-overlays-") as folder:
        for each in overlays:
            (Path(folder) / f"{each.name}.yaml").write_text(each.text, encoding="utf-8")
        arguments = [
            *("--directory", folder),
            *("--framework", "kubernetes"),
            *("--output", "json"),
            "--skip-download",
            "--quiet",
            "--compact",
        ]
        done = run(installed("checkov", "checkov"), arguments, good=(0, 1))
    told: dict[str, Any] = json.loads(done.stdout)
    unread = told["results"].get("parsing_errors")
    if unread:
        raise CommandError(f"checkov cannot read {', '.join(unread)}")
    return [
        Failed(
            overlay=Path(each["file_path"]).stem,
            line=each["file_line_range"][0],
            resource=each["resource"],
            check=each["check_id"],
            says=each["check_name"],
        )
        for each in told["results"]["failed_checks"]
    ]
