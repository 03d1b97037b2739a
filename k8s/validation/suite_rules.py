"""Holds overlays to `sixhop check --k8s`: nothing may be found, no warning either."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from gateway.cli.check import CheckOptions, report
from gateway.cli.pod_check import PodHops
from gateway.cli.rooms import Opinion
from gateway.manifests.documents import read_manifests
from gateway.manifests.patches import patch_findings
from k8s.validation.rendering import K8S, Rendered
from services.runtime.config import PREFIX


def findings(overlays: Sequence[Rendered], environ: Mapping[str, str]) -> Iterator[str]:
    """Yield all that the command would say.

    Args:
        overlays: what a cluster would get.
        environ: the environment that the hops are asked in; nothing of ours in it counts.
    """
    others = {name: value for name, value in environ.items() if not name.startswith(PREFIX)}
    yield from asyncio.run(_checked(overlays, others))


def patches() -> Iterator[str]:
    """Yield the patches of our own kustomizations that change nothing."""
    yield from (each.text for each in patch_findings(read_manifests(K8S).documents))


async def _checked(overlays: Sequence[Rendered], environ: Mapping[str, str]) -> list[str]:
    # Most pods of all overlays are configured alike.
    hops = PodHops()
    return [text for overlay in overlays for text in await _one(overlay, environ, hops)]


async def _one(overlay: Rendered, environ: Mapping[str, str], hops: PodHops) -> list[str]:
    with TemporaryDirectory(prefix="sixhop-overlay-") as folder:
        file = Path(folder) / f"{overlay.name}.yaml"
        file.write_text(overlay.text, encoding="utf-8")
        found = await report(environ, CheckOptions(manifests=file), _no_rooms, hops.ask)
    said = [*found.opinion.unreadable, *(each.text for each in found.opinion.findings)]
    return [text.replace(f"{folder}/", "") for text in said]


async def _no_rooms(environ: Mapping[str, str]) -> Opinion:
    """Ask nobody about the file alone: each pod is asked about it with what it has besides."""
    return Opinion()
