"""Holds Istio's objects to its own definitions, as an API server does: schemas and CEL rules.

The file of definitions is Istio's, and not ours to carry; whoever has none takes `istio_models`.
Misses what only Istio's webhook knows, for which `gateway/manifests` has rules.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from gateway.manifests.documents import Document
from k8s.validation.cel import CelRules
from k8s.validation.places import place

GROUP = ".istio.io"
_METADATA = {
    "type": "object",
    "required": ["name"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string"},
        "namespace": {"type": "string"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}
"""What one writes of it; the definitions leave it to the API server."""


@dataclass(frozen=True, slots=True)
class Definitions:
    """Holds the schemas of a file of CustomResourceDefinitions."""

    schemas: Mapping[tuple[str, str], Mapping[str, Any]]
    """By apiVersion and kind."""
    cel: CelRules

    def findings(self, documents: Sequence[Document]) -> Iterator[str]:
        """Yield what an API server with these definitions would refuse."""
        for document in documents:
            version = str(document.at("apiVersion") or "")
            if not version.rpartition("/")[0].endswith(GROUP):
                continue
            schema = self.schemas.get((version, document.kind))
            if schema is None:
                yield (
                    f"{document.where}: Istio knows no {document.kind} of {version}; correct its "
                    "apiVersion or its kind"
                )
                continue
            refused = list(jsonschema.Draft202012Validator(schema).iter_errors(document.body))
            for error in refused:
                cause = jsonschema.exceptions.best_match([error])
                yield f"{document.where}: {place(cause.absolute_path)}: {cause.message}"
            # The rules are about values that the schema has taken.
            for path, said in self.cel.broken(schema, document.body) if not refused else ():
                yield f"{document.where}: {place(path)}: {said}"


def read_definitions(path: Path) -> Definitions:
    """Return the definitions of a file, each made strict: a field that it lacks is refused.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open(encoding="utf-8") as file:
        found = [each for each in yaml.load_all(file, yaml.CSafeLoader) if each]
    schemas = {
        (f"{spec['group']}/{version['name']}", spec["names"]["kind"]): _object(
            version["schema"]["openAPIV3Schema"]
        )
        for spec in (each["spec"] for each in found)
        for version in spec["versions"]
    }
    return Definitions(schemas, CelRules())


def _object(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    own = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": _METADATA}
    strict = _strict(schema)
    return {**strict, "properties": {**strict["properties"], **own}}


def _strict(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Refuse what a schema does not name, at any depth; its alternatives only name combinations."""
    made = dict(schema)
    if "properties" in schema:
        made["properties"] = {key: _strict(each) for key, each in schema["properties"].items()}
        open_ended = schema.get("x-kubernetes-preserve-unknown-fields")
        if not open_ended and "additionalProperties" not in schema:
            made["additionalProperties"] = False
    if isinstance(schema.get("additionalProperties"), Mapping):
        made["additionalProperties"] = _strict(schema["additionalProperties"])
    if isinstance(schema.get("items"), Mapping):
        made["items"] = _strict(schema["items"])
    return made
