"""Lists who looks at the manifests."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gateway.manifests.documents import Document
from k8s.validation import (
    dockerfile,
    gateway_api,
    istio_models,
    kubernetes_schema,
    policies,
    suite_rules,
)
from k8s.validation.istio_crds import read_definitions
from k8s.validation.rendering import K8S, Rendered

DOCKERFILE = K8S / "Dockerfile"

Look = Callable[[Sequence[Document]], Iterator[str]]
"""Yields what is wrong with objects: which, where in it, what, and what to do."""


@dataclass(frozen=True, slots=True)
class Validator:
    """Is one who looks at objects one by one."""

    name: str
    findings: Look


def validators(istio_crds: Path | None) -> tuple[Validator, ...]:
    """Return who looks at objects one by one; every object is of one of them.

    Args:
        istio_crds: a file of Istio's definitions; None takes the published models.

    Raises:
        OSError: the file cannot be read.
    """
    istio = (
        Validator("Istio's models", istio_models.findings)
        if istio_crds is None
        else Validator("Istio's definitions", read_definitions(istio_crds).findings)
    )
    return (
        Validator("Kubernetes' schemas", kubernetes_schema.findings),
        istio,
        Validator("Gateway API", gateway_api.findings),
    )


def whole(
    overlays: Sequence[Rendered], environ: Mapping[str, str]
) -> Iterator[tuple[str, Callable[[], Iterator[str]]]]:
    """Yield who looks at everything at once, slow ones first.

    Args:
        overlays: what a cluster would get.
        environ: the environment that the hops are asked in.
    """
    yield "sixhop check --k8s", lambda: suite_rules.findings(overlays, environ)
    yield "checkov", lambda: policies.findings(overlays)
    yield "kustomize", suite_rules.patches
    if DOCKERFILE.exists():
        yield "hadolint", lambda: dockerfile.findings(DOCKERFILE)
