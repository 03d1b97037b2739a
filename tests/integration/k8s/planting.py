"""Plants errors into what the production overlay makes, and asks every validator about them."""

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gateway.manifests.checking import check_manifests
from gateway.manifests.cluster import sort_out
from gateway.manifests.documents import Document, Reading
from gateway.manifests.embedded import embedded_in, write_out
from gateway.manifests.pod_configs import read_pods
from k8s.validation import gateway_api, istio_models, kubernetes_schema
from k8s.validation.istio_crds import Definitions, read_definitions
from k8s.validation.rendering import OVERLAYS, render
from services.runtime.config import load_config
from tests.architecture.sources import ROOT

SCHEMAS, DEFINITIONS, MODELS = "Kubernetes' schemas", "Istio's definitions", "Istio's models"
GATEWAY_API, CHECK = "Gateway API", "sixhop check --k8s"
CRDS = ROOT.parent / "shared/data/istio-crds.yaml"
"""Istio's definitions, where somebody has laid them; they are not ours to carry."""
GONE = object()
"""Stands for no value."""

Body = dict[str, Any]
Change = Callable[[Body], None]


@dataclass(frozen=True, slots=True)
class Planted:
    """Is one error."""

    kind: str
    name: str
    change: Change
    caught_by: frozenset[str]
    """All who notice; nobody else does."""
    words: str
    """What one of them says."""


def error(
    kind: str, name: str, change: Change, *caught_by: str, words: str, id: str | None = None
) -> object:
    """Return one row of a table of errors, named after what is said of it."""
    row = Planted(kind, name, change, frozenset(caught_by), words)
    return pytest.param(row, id=id or f"{kind}: {words}")


def put(path: str, value: Any) -> Change:
    """Return the change that sets what stands at a path; GONE takes it out."""

    def change(body: Body) -> None:
        *before, last = _steps(path)
        at = _at(body, before)
        if value is GONE:
            del at[last]
        elif isinstance(at, list) and last == len(at):
            at.append(value)
        else:
            at[last] = value

    return change


def renamed(path: str, name: str) -> Change:
    """Return the change that gives a field another name."""

    def change(body: Body) -> None:
        *before, last = _steps(path)
        at = _at(body, before)
        at[name] = at.pop(last)

    return change


def both(*changes: Change) -> Change:
    """Return several changes as one."""

    def change(body: Body) -> None:
        for each in changes:
            each(body)

    return change


def _steps(path: str) -> list[str | int]:
    """Read `spec/ports/0/name`; a slash inside a name is `~1`, as JSON pointers have it."""
    return [int(step) if step.isdigit() else step.replace("~1", "/") for step in path.split("/")]


def _at(body: Any, steps: Sequence[str | int]) -> Any:
    for step in steps:
        body = body[step]
    return body


@cache
def production() -> tuple[Document, ...]:
    """Return what the production overlay makes."""
    return render(OVERLAYS / "production").documents


@cache
def definitions() -> Definitions | None:
    """Return Istio's definitions; None where nobody has laid them."""
    return read_definitions(CRDS) if CRDS.exists() else None


def with_error(error: Planted) -> tuple[tuple[Document, ...], Document]:
    """Return all objects with an error in one of them, and that one."""
    documents = list(production())
    (number,) = [
        number
        for number, each in enumerate(documents)
        if (each.kind, each.name) == (error.kind, error.name)
    ]
    body = deepcopy(dict(documents[number].body))
    error.change(body)
    name = str(body["metadata"]["name"])
    documents[number] = replace(documents[number], body=body, name=name, kind=str(body["kind"]))
    return tuple(documents), documents[number]


def told(
    documents: tuple[Document, ...], changed: Sequence[Document], folder: Path
) -> dict[str, list[str]]:
    """Return what every validator says, by its name; those that say nothing are left out.

    Args:
        documents: all objects.
        changed: those that are looked at by whoever looks at objects one by one.
        folder: where the configuration is written to.
    """
    crds = definitions()
    said = {
        SCHEMAS: list(kubernetes_schema.findings(changed)),
        MODELS: list(istio_models.findings(changed)),
        GATEWAY_API: list(gateway_api.findings(changed)),
        DEFINITIONS: list(crds.findings(changed)) if crds is not None else [],
        CHECK: list(_checked(documents, folder)),
    }
    return {name: texts for name, texts in said.items() if texts}


def _checked(documents: tuple[Document, ...], folder: Path) -> Iterator[str]:
    """Yield what the rules of `sixhop check --k8s` find; the hops themselves are not asked."""
    cluster = sort_out(documents)
    config = load_config(write_out(embedded_in(documents)[0], folder), {})
    pods = read_pods(cluster, None, folder)
    report = check_manifests(Reading(documents, 1), cluster, pods, config)
    yield from (finding.text for finding in report.findings)


def hold_to_who_notices(planted: Planted, folder: Path) -> None:
    """Hold an error to being noticed by those who are said to, and by nobody else."""
    documents, changed = with_error(planted)

    noticed = told(documents, [changed], folder)

    unasked = {DEFINITIONS} if definitions() is None else set()
    assert set(noticed) == planted.caught_by - unasked
    # Where nobody has laid Istio's definitions, some errors wait for the cluster.
    if noticed:
        assert any(planted.words in text for texts in noticed.values() for text in texts)
