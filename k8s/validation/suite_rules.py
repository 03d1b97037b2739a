"""Holds overlays to `sixhop check --k8s`: nothing may be found, no warning either."""

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from gateway.cli.check import CheckOptions, report
from gateway.cli.rooms import Opinion, ask_hop
from gateway.manifests.documents import read_manifests
from gateway.manifests.patches import patch_findings
from k8s.validation.rendering import K8S, Rendered
from services.runtime.config import CONFIG_VARIABLE, PREFIX

AT_A_TIME = 2
"""How many hops are asked at once; each is a process that has to load its hop."""


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
    hops = _Hops()
    return [text for overlay in overlays for text in await _one(overlay, environ, hops)]


async def _one(overlay: Rendered, environ: Mapping[str, str], hops: "_Hops") -> list[str]:
    with TemporaryDirectory(prefix="sixhop-overlay-") as folder:
        file = Path(folder) / f"{overlay.name}.yaml"
        file.write_text(overlay.text, encoding="utf-8")
        found = await report(environ, CheckOptions(manifests=file), _no_rooms, hops.ask)
    said = [*found.opinion.unreadable, *(each.text for each in found.opinion.findings)]
    return [text.replace(f"{folder}/", "") for text in said]


async def _no_rooms(environ: Mapping[str, str]) -> Opinion:
    """Ask nobody about the file alone: each pod is asked about it with what it has besides."""
    return Opinion()


class _Hops:
    """Asks hops, each question once: most pods of all overlays are configured alike."""

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(AT_A_TIME)
        self._locks: defaultdict[tuple[object, ...], asyncio.Lock] = defaultdict(asyncio.Lock)
        self._told: dict[tuple[object, ...], Opinion] = {}

    async def ask(self, hop: str, environ: Mapping[str, str]) -> Opinion:
        """Return what a hop says of the environment of its pod."""
        question = _question(hop, environ)
        # One lock a question, so that whoever asks it at the same time waits for the answer.
        async with self._locks[question]:
            if question not in self._told:
                async with self._places:
                    self._told[question] = await ask_hop(hop, environ)
            return self._told[question]


def _question(hop: str, environ: Mapping[str, str]) -> tuple[object, ...]:
    """Return what an answer depends on: the hop, its variables, and its file by what is in it."""
    ours = {name: value for name, value in environ.items() if name.startswith(PREFIX)}
    text = Path(ours.pop(CONFIG_VARIABLE)).read_text(encoding="utf-8")
    return (hop, text, *sorted(ours.items()))
