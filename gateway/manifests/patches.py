"""Finds what a kustomization means to change and does not: kustomize passes over it and exits 0.

The objects that reach a kustomization are followed through its resources and components, as far as
they lie in files. What it cannot follow (addresses, charts, plugins) it says nothing about.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from gateway.manifests.documents import (
    KUSTOMIZATION_KINDS,
    Document,
    at,
    items,
    read_manifests,
    table,
    texts,
)
from gateway.manifests.labels import labels_of
from services.runtime.checks.finding import Finding, violation

_FILES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_GENERATORS = {"configMapGenerator": "ConfigMap", "secretGenerator": "Secret"}
_UNFOLLOWED = ("helmCharts", "generators", "transformers", "bases")


@dataclass(slots=True)
class _Object:
    """Is one object on its way, with all the names that a target may know it by."""

    group: str
    version: str
    kind: str
    names: set[str]
    namespaces: set[str]
    labels: dict[str, str]
    annotations: Mapping[str, str]
    images: set[str]


@dataclass(slots=True)
class _Flow:
    """Is what reaches a kustomization."""

    objects: list[_Object] = field(default_factory=list)
    whole: bool = True
    """Whether everything that reaches it could be followed."""
    findings: list[Finding] = field(default_factory=list)


def patch_findings(documents: tuple[Document, ...]) -> Iterator[Finding]:
    """Yield the patches, images and replacements whose target is not there."""
    for document in documents:
        # A component changes what reaches it from whoever takes it in, and has nothing alone.
        if document.kind == "Kustomization":
            yield from _followed(Path(document.file).parent, _Flow()).findings


def _followed(folder: Path, flow: _Flow) -> _Flow:
    """Return what leaves a kustomization when this reaches it."""
    document = _kustomization(folder)
    if document is None or any(document.at(key) for key in _UNFOLLOWED):
        flow.whole = False
        return flow
    # The labels and names of a component are given to all that reaches it.
    flow = flow if document.kind == "Component" else _Flow(whole=flow.whole)
    for entry in texts(document.body, "resources"):
        _take_in(folder / entry, flow)
    for entry in texts(document.body, "components"):
        _followed(folder / entry, flow)
    for key, kind in _GENERATORS.items():
        for made in items(document.body, key):
            flow.objects.append(_object({"kind": kind, "metadata": made}))
    if flow.whole:
        flow.findings += _missed(document, flow.objects)
    for patch in items(document.body, "patches"):
        _patch(flow.objects, patch, folder)
    if flow.whole:
        flow.findings += _missed_images(document, flow.objects)
    for each in flow.objects:
        _rename(each, document)
    return flow


def _kustomization(folder: Path) -> Document | None:
    for name in _FILES:
        if (folder / name).is_file():
            found = read_manifests(folder / name).documents
            return next((each for each in found if each.kind in KUSTOMIZATION_KINDS), None)
    return None


def _take_in(path: Path, flow: _Flow) -> None:
    if path.is_file():
        flow.objects += [_object(each.body) for each in read_manifests(path).documents]
    elif path.is_dir():
        inner = _followed(path, _Flow())
        flow.objects += inner.objects
        flow.whole &= inner.whole
        # What is wrong inside is told where that folder is looked at by itself.
    else:
        flow.whole = False


def _object(body: Any) -> _Object:
    group, _, version = str(at(body, "apiVersion") or "").rpartition("/")
    annotations = at(body, "metadata", "annotations")
    return _Object(
        group=group,
        version=version,
        kind=str(at(body, "kind")),
        names={str(at(body, "metadata", "name"))},
        namespaces={str(at(body, "metadata", "namespace") or "default")},
        labels=dict(labels_of(body)),
        annotations=annotations if isinstance(annotations, Mapping) else {},
        images=set(_images(body)),
    )


def _images(body: Any) -> Iterator[str]:
    if isinstance(body, Mapping):
        for key, value in body.items():
            if key == "image" and isinstance(value, str):
                name = value.split("@")[0]
                last = name.rpartition("/")[2]
                yield name.removesuffix(":" + last.partition(":")[2]) if ":" in last else name
            else:
                yield from _images(value)
        # One step of a JSON patch.
        if str(body.get("path", "")).endswith("/image"):
            yield from _images({"image": body.get("value")})
    elif isinstance(body, list):
        for each in body:
            yield from _images(each)


def _patch(objects: list[_Object], patch: Mapping[str, Any], folder: Path) -> None:
    """Give objects what later targets may know them by."""
    file = folder / str(patch.get("path"))
    text = str(patch.get("patch") or (file.read_text("utf-8") if file.is_file() else ""))
    try:
        bodies = list(yaml.safe_load_all(text))
    except yaml.YAMLError:
        return  # Kustomize refuses it, and says so.
    target = patch.get("target")
    for body in bodies:
        own = {"kind": at(body, "kind"), "name": at(body, "metadata", "name")}
        for each in objects:
            if _hit(target if isinstance(target, Mapping) else own, each):
                each.images.update(_images(body))
                each.labels.update(labels_of(body))


def _rename(each: _Object, document: Document) -> None:
    prefix, suffix = (str(document.at(key) or "") for key in ("namePrefix", "nameSuffix"))
    each.names |= {f"{prefix}{name}{suffix}" for name in each.names}
    if document.at("namespace"):
        each.namespaces.add(str(document.at("namespace")))
    each.labels |= table(document.body, "commonLabels")
    for labels in items(document.body, "labels"):
        each.labels |= table(labels, "pairs")
    renamed = {
        str(image.get("newName"))
        for image in items(document.body, "images")
        if str(image.get("name")) in each.images and image.get("newName")
    }
    each.images |= renamed


def _missed(document: Document, objects: list[_Object]) -> Iterator[Finding]:
    for number, patch in enumerate(items(document.body, "patches"), 1):
        target = patch.get("target")
        # Without a target a patch names its object itself, and kustomize refuses what is not there.
        if isinstance(target, Mapping) and not _any_hit(target, objects):
            yield _miss(document, f"patch {number}", target)
    for number, replacement in enumerate(items(document.body, "replacements"), 1):
        for target in items(replacement, "targets"):
            chosen = target.get("select")
            if isinstance(chosen, Mapping) and not _any_hit(chosen, objects):
                yield _miss(document, f"replacement {number}", chosen)


def _missed_images(document: Document, objects: list[_Object]) -> Iterator[Finding]:
    there = {image for each in objects for image in each.images}
    for image in items(document.body, "images"):
        if str(image.get("name")) not in there:
            yield violation(
                "patches-hit",
                f"{document.where}: images names {image.get('name')}, which no object has, so it "
                f"changes nothing; there are {', '.join(sorted(there)) or 'none'}",
            )


def _miss(document: Document, what: str, target: Mapping[str, Any]) -> Finding:
    said = ", ".join(f"{key} {value}" for key, value in target.items())
    return violation(
        "patches-hit",
        f"{document.where}: the target of {what} ({said}) is no object here, so it changes "
        "nothing, and kustomize does not say so; correct the target, or take the patch out",
    )


def _any_hit(target: Mapping[str, Any], objects: list[_Object]) -> bool:
    return any(_hit(target, each) for each in objects)


def _hit(target: Mapping[str, Any], each: _Object) -> bool:
    facts = {
        "group": {each.group},
        "version": {each.version},
        "kind": {each.kind},
        "name": each.names,
        "namespace": each.namespaces,
    }
    named = all(
        any(_matches(target[key], value) for value in values)
        for key, values in facts.items()
        # Kustomize refuses what is no text.
        if target.get(key) and isinstance(target[key], str)
    )
    return (
        named
        and _labelled(target.get("labelSelector"), each.labels)
        and _labelled(target.get("annotationSelector"), each.annotations)
    )


def _matches(pattern: str, value: str) -> bool:
    try:
        return re.fullmatch(pattern, value) is not None
    except re.error:
        return True  # Kustomize refuses it, and says so.


def _labelled(selector: Any, labels: Mapping[str, str]) -> bool:
    """Tell whether labels meet a selector in writing, such as `a=b,c!=d,e,!f`."""
    if "(" in str(selector):
        return True  # A set of values: nothing is said of it.
    for part in str(selector or "").split(","):
        key, equal, value = (piece.strip() for piece in part.partition("="))
        if not key:
            continue
        if not equal:
            wanted = not key.startswith("!")
            if (key.lstrip("!") in labels) != wanted:
                return False
        elif key.endswith("!"):
            if labels.get(key[:-1].strip()) == value:
                return False
        elif labels.get(key) != value.removeprefix("=").strip():
            return False
    return True
