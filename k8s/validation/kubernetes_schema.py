"""Holds what Kubernetes itself knows to its published schemas, with no field that they lack.

Misses what only the API server's code checks: words, quantities, names, selectors, what excludes
what. `gateway/manifests` has rules for these.
"""

from collections.abc import Iterator, Sequence

import kubernetes_validate

from gateway.manifests.documents import Document
from k8s.validation.places import place

CUSTOM = (".istio.io", "gateway.networking.k8s.io")
"""The groups that others look at."""


def findings(documents: Sequence[Document]) -> Iterator[str]:
    """Yield what the newest schemas refuse, and what they do not know at all."""
    newest = kubernetes_validate.latest_version()
    for document in documents:
        version = str(document.at("apiVersion") or "")
        if version.rpartition("/")[0].endswith(CUSTOM):
            continue
        try:
            body = {**document.body, "apiVersion": version}
            kubernetes_validate.validate(body, newest, strict=True)
        except kubernetes_validate.SchemaNotFoundError:
            yield (
                f"{document.where}: Kubernetes {newest} knows no {document.kind} of {version!r}; "
                "correct its apiVersion or its kind"
            )
        except kubernetes_validate.ValidationError as error:
            yield f"{document.where}: {place(error.absolute_path)}: {error.message}"
