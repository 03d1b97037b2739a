"""Writes every file of the manifests that follows from the configuration and the call graph."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from gateway.manifests.rendering import access, mesh, network, outside, pods, split
from gateway.manifests.rendering.names import PROCESSES, Body, object_name
from services.runtime.checks.tree import read_tree
from services.runtime.config import Config

HEADER = "# Written by `sixhop k8s render` from sixhop.toml and the call graph: change those.\n"
SETTINGS = Path("base/sixhop.toml")
"""The configuration, in the folder of manifests."""
SPLIT = Path("components/split")
"""Where the parts of hops are, a folder each."""


def rendered(config: Config, folder: Path) -> dict[Path, str]:
    """Return the files by their place in the folder of manifests.

    Raises:
        ConfigError: a section cannot be read.
    """
    return {path: _text(found) for path, found in objects(config, folder).items() if found}


def objects(config: Config, folder: Path) -> dict[Path, list[Body]]:
    """Return what the files hold, by their place in the folder of manifests.

    Args:
        config: what they follow from.
        folder: where the parts of hops are looked for.

    Raises:
        ConfigError: a section cannot be read.
    """
    tree = read_tree(config)
    base, istio, own = Path("base"), Path("components/istio/generated"), SPLIT / "generated"
    parts = split.parts_in(folder / SPLIT)
    files: dict[Path, list[Body]] = {
        base / object_name(hop) / "generated.yaml": pods.hop_patches(hop, tree) for hop in PROCESSES
    }
    files |= {
        base / "generated/services.yaml": [*pods.services(config), *pods.accounts()],
        base / "generated/network.yaml": network.network_policies(config),
        istio / "access.yaml": access.authorization_policies(config),
        istio / "destinations.yaml": [
            mesh.destination(object_name(hop), hop, tree) for hop in PROCESSES
        ],
        istio / "egress.yaml": [
            *(access.sidecar(hop, config, {}) for hop in PROCESSES),
            *outside.service_entries(config),
        ],
        istio / "routes.yaml": [mesh.route(hop, tree) for hop in PROCESSES],
        own / "destinations.yaml": split.part_destinations(parts, tree),
        own / "patches.yaml": split.patches(parts, tree),
        own / "services.yaml": split.part_services(parts, tree),
    }
    return files


def write(files: Mapping[Path, str], folder: Path) -> list[Path]:
    """Write files into a folder, take away what was written before and is none of them any more.

    Returns:
        What has changed, by its place in the folder.

    Raises:
        OSError: a file cannot be written.
    """
    changed = [path for path, old, new in _changes(files, folder) if old != new]
    for path in changed:
        if path in files:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(files[path], encoding="utf-8")
        else:
            (folder / path).unlink()
    return changed


def differences(files: Mapping[Path, str], folder: Path) -> str:
    """Return how the files of a folder differ from what they should be; empty if they do not.

    Raises:
        OSError: a file cannot be read.
    """
    lines: list[str] = []
    for path, old, new in _changes(files, folder):
        names = str(folder / path), "sixhop k8s render"
        lines += difflib.unified_diff(old.splitlines(True), new.splitlines(True), *names)
    return "".join(lines)


def _changes(files: Mapping[Path, str], folder: Path) -> Iterator[tuple[Path, str, str]]:
    """Yield each file that is there or should be, with its old text and its new one."""
    there = {
        path.relative_to(folder): text
        for path in sorted(folder.rglob("*.yaml"))
        if (text := path.read_text(encoding="utf-8")).startswith(HEADER)
    }
    for path in sorted({*there, *files}):
        old = there.get(path, "")
        if not old and (folder / path).exists():
            # Somebody has taken the first line off, or has written a file where ours goes.
            old = (folder / path).read_text(encoding="utf-8")
        yield path, old, files.get(path, "")


def _text(bodies: Sequence[Mapping[str, Any]]) -> str:
    return HEADER + yaml.dump_all(
        bodies, Dumper=_Dumper, sort_keys=False, default_flow_style=False, width=120
    )


class _Dumper(yaml.SafeDumper):
    """Writes what occurs twice twice: a reader looks at one object and not at anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        """Return that nothing is named to be pointed at."""
        return True
