"""Holds Istio's objects to published models of it: what goes in must come out the same.

The models pass over a field that they do not know and make a number of a text, so the comparison
is what finds both. Misses the rules in CEL, and what Istio has added since the models were made.
"""

import importlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pydantic

from gateway.manifests.documents import Document
from k8s.validation.places import place

GROUP = ".istio.io"


def findings(documents: Sequence[Document]) -> Iterator[str]:
    """Yield what the models refuse, lose or change."""
    for document in documents:
        group, _, version = str(document.at("apiVersion") or "").partition("/")
        if not group.endswith(GROUP):
            continue
        model = _model(group.removesuffix(GROUP), version, document.kind)
        if model is None:
            yield (
                f"{document.where}: Istio knows no {document.kind} of {group}/{version}; correct "
                "its apiVersion or its kind"
            )
            continue
        try:
            read = model.model_validate(document.body)
        except pydantic.ValidationError as error:
            for each in error.errors():
                yield f"{document.where}: {place(each['loc'])}: {each['msg']}"
            continue
        kept = read.model_dump(mode="json", by_alias=True, exclude_unset=True)
        for path, said in _lost(document.body, kept):
            yield f"{document.where}: {place(path)}: {said}"


def _model(group: str, version: str, kind: str) -> type[pydantic.BaseModel] | None:
    try:
        module = importlib.import_module(f"cloudcoil.models.istio.{group}.{version}")
    except ModuleNotFoundError:
        return None
    found = getattr(module, kind, None)
    return found if isinstance(found, type) and issubclass(found, pydantic.BaseModel) else None


def _lost(
    given: Any, kept: Any, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if isinstance(given, Mapping) and isinstance(kept, Mapping):
        for key, value in given.items():
            if key in kept:
                yield from _lost(value, kept[key], (*path, key))
            else:
                yield (*path, key), "Istio has no such field; correct its name or its place"
    elif isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        for number, (one, other) in enumerate(zip(given, kept, strict=True)):
            yield from _lost(one, other, (*path, number))
    elif given != kept or isinstance(given, str) is not isinstance(kept, str):
        yield path, f"{given!r} would be taken for {kept!r}; write that"
