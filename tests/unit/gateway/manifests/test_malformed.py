"""Tests that whatever stands in a manifest is answered by findings and never by a crash."""

import itertools
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.manifests.checking import check_manifests
from gateway.manifests.cluster import sort_out
from gateway.manifests.documents import Document, Reading, read_text
from gateway.manifests.patches import patch_findings
from gateway.manifests.pod_configs import read_pods
from services.runtime.config import load_config
from tests.requirements import requirement
from tests.unit.gateway.manifests.breaking import SUITE
from tests.unit.gateway.manifests.test_absent import WHOLE
from tests.unit.gateway.manifests.test_access import DENY_ALL, MESH, NETWORK, PODS
from tests.unit.gateway.manifests.test_attached import EDGE
from tests.unit.gateway.manifests.test_callees import TWO_HOPS
from tests.unit.gateway.manifests.test_edge import ROUTES
from tests.unit.gateway.manifests.test_meshed import MESHED
from tests.unit.gateway.manifests.test_patches import OVERLAY, laid_out

JUNK: tuple[Any, ...] = (None, "x", 7, [], {}, [None], [["x"]], {"x": {"y": None}}, True, -1.5, "*")
EACH = 3
"""How many of them are tried at each place; the next place goes on with the others."""
GRAPH = PODS + DENY_ALL + "".join((*MESH[:2], *NETWORK[:2]))


def places(body: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the place of everything in an object, but for its kind."""
    if path and path != ("kind",):
        yield path
    if isinstance(body, dict):
        for key, value in body.items():
            yield from places(value, (*path, key))
    elif isinstance(body, list):
        for number, value in enumerate(body):
            yield from places(value, (*path, number))


def spoiled(document: Document, path: tuple[str | int, ...], junk: Any) -> Document:
    """Return an object with something else at one place."""
    body = deepcopy(dict(document.body))
    at: Any = body
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = junk
    return replace(document, body=body)


@requirement("check:manifests")
@pytest.mark.parametrize("text", [SUITE, GRAPH, EDGE, TWO_HOPS, MESHED, ROUTES, WHOLE])
def test_nothing_in_a_manifest_ends_the_check(text: str, tmp_path: Path) -> None:
    documents = read_text("suite.yaml", text).documents
    config = load_config(Path("/dev/null"), {})
    junk = itertools.cycle(JUNK)
    seen: set[tuple[object, ...]] = set()
    for number, document in enumerate(documents):
        for path in places(dict(document.body)):
            shape = (document.kind, *(step for step in path if isinstance(step, str)))
            if shape in seen:
                continue
            seen.add(shape)
            for _ in range(EACH):
                changed = list(documents)
                changed[number] = spoiled(document, path, next(junk))
                cluster = sort_out(tuple(changed))
                pods = read_pods(cluster, None, tmp_path)

                check_manifests(Reading(tuple(changed), 1), cluster, pods, config)

    assert len(seen) > 20


@requirement("check:kustomize")
def test_nothing_in_a_kustomization_ends_the_check(tmp_path: Path) -> None:
    file = laid_out(tmp_path) / "overlay/kustomization.yaml"
    (document,) = read_text(str(file), OVERLAY).documents
    junk = itertools.cycle(JUNK)

    for path in [*places(dict(document.body))] * EACH:
        file.write_text(yaml.safe_dump(spoiled(document, path, next(junk)).body), encoding="utf-8")
        list(patch_findings((document,)))
