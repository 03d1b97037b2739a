"""Builds what the process of a pod reads when it starts: its variables and its file."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from gateway.manifests.cluster import Cluster, Workload
from gateway.manifests.documents import Document, at, items, texts
from gateway.manifests.embedded import Embedded
from services.runtime.config import CONFIG_VARIABLE, DEFAULT_FILE, PREFIX
from services.runtime.topology import DEPLOYMENTS, GATEWAY

_REFERENCE = re.compile(r"\$(\$|\(([A-Za-z_][A-Za-z0-9_.-]*)\))")


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSettings:
    """Is what the process of a pod reads."""

    workload: Workload
    environ: Mapping[str, str]
    """The variables of ours whose values stand in the manifests; without the file's name."""
    unknown: tuple[str, ...]
    """Those whose values do not: they come from Secrets, or from objects that are not here."""
    named: str
    """The file that is named to it, as a path in the pod; empty when none is."""
    path: PurePosixPath
    """Where it looks for its file."""
    file: Embedded | None
    """What it finds there; None when no ConfigMap of the manifests has it."""
    beside: Document | None
    """The ConfigMap that is mounted there and has no such file; None without one."""

    @property
    def where(self) -> str:
        """Return where it stands."""
        return self.workload.document.where


def pod_settings(workload: Workload, cluster: Cluster) -> PodSettings:
    """Return what the process of a pod reads."""
    known, unknown = _variables(workload.container, cluster)
    ours = {name: value for name, value in known.items() if name.startswith(PREFIX)}
    named = ours.pop(CONFIG_VARIABLE, "") or _argument(workload)
    path = PurePosixPath(str(workload.container.get("workingDir") or "/")) / (named or DEFAULT_FILE)
    file, beside = _mounted(path, workload, cluster)
    return PodSettings(
        workload=workload,
        environ=ours,
        unknown=tuple(name for name in unknown if name.startswith(PREFIX)),
        named=named,
        path=path,
        file=file,
        beside=beside,
    )


def _variables(
    container: Mapping[str, Any], cluster: Cluster
) -> tuple[dict[str, str], dict[str, None]]:
    """Return the variables of a container that are known, and the names of those that are not."""
    known: dict[str, str] = {}
    unknown: dict[str, None] = {}
    for source in items(container, "envFrom"):
        data = _data(str(at(source, "configMapRef", "name")), cluster) or {}
        prefix = str(source.get("prefix") or "")
        known |= {f"{prefix}{key}": str(value) for key, value in data.items()}
    for variable in items(container, "env"):
        name = str(variable.get("name", ""))
        value = _value(variable, known, unknown, cluster)
        for names in (known, unknown):
            names.pop(name, None)
        if value is None:
            unknown[name] = None
        else:
            known[name] = value
    return known, unknown


def _value(
    variable: Mapping[str, Any],
    known: Mapping[str, str],
    unknown: Mapping[str, None],
    cluster: Cluster,
) -> str | None:
    """Return the value of a variable; None when it does not stand in the manifests."""
    if "value" in variable:
        text = str(variable["value"] if variable["value"] is not None else "")
        if any(found.group(2) in unknown for found in _REFERENCE.finditer(text)):
            return None
        return _REFERENCE.sub(lambda found: _referred(found, known), text)
    reference = at(variable, "valueFrom", "configMapKeyRef")
    data = _data(str(at(reference, "name")), cluster) or {}
    value = data.get(str(at(reference, "key")))
    return None if value is None else str(value)


def _referred(found: re.Match[str], known: Mapping[str, str]) -> str:
    """Return what stands for `$(NAME)` or `$$`; a name that nobody knows stays as it is."""
    name = found.group(2)
    return "$" if name is None else known.get(name, found.group(0))


def _data(name: str, cluster: Cluster) -> Mapping[str, Any] | None:
    for document in cluster.of_kind("ConfigMap"):
        if document.name == name and isinstance(document.at("data"), Mapping):
            data: Mapping[str, Any] = document.at("data")
            return data
    return None


def _argument(workload: Workload) -> str:
    """Return the file that is named behind the hop's module; empty without one."""
    container = workload.container
    words = [
        part
        for word in (*texts(container, "command"), *texts(container, "args"))
        for part in str(word).split()
    ]
    module = f"services.{DEPLOYMENTS.get(workload.hop, workload.hop)}"
    for count, word in enumerate(words, 1):
        if word in (GATEWAY, module):
            return next((each for each in words[count:] if not each.startswith("-")), "")
    return ""


def _mounted(
    path: PurePosixPath, workload: Workload, cluster: Cluster
) -> tuple[Embedded | None, Document | None]:
    """Return what a ConfigMap puts at a path of a pod, or the one that is there without it."""
    volumes = {str(volume.get("name")): volume for volume in items(workload.pod, "volumes")}
    beside: Document | None = None
    for mount in items(workload.container, "volumeMounts"):
        folder = PurePosixPath(str(mount.get("mountPath", "")))
        inside = str(mount.get("subPath") or "")
        if inside and path == folder:
            wanted = inside
        elif not inside and path.is_relative_to(folder):
            wanted = str(path.relative_to(folder))
        else:
            continue
        for document, key, name in _files(volumes.get(str(mount.get("name")), {}), cluster):
            if name == wanted:
                return Embedded(document, key, str(document.at("data", key))), None
            beside = document
    return None, beside


def _files(volume: Mapping[str, Any], cluster: Cluster) -> Iterator[tuple[Document, str, str]]:
    """Yield the files of a volume that come from ConfigMaps: the object, its key, the name."""
    projected = [at(source, "configMap") for source in items(volume, "projected", "sources")]
    for source in (at(volume, "configMap"), *projected):
        for document in cluster.of_kind("ConfigMap"):
            if not isinstance(source, Mapping) or document.name != source.get("name"):
                continue
            data = document.at("data")
            keys: Sequence[str] = list(data) if isinstance(data, Mapping) else []
            chosen = {
                str(each.get("key")): str(each.get("path")) for each in items(source, "items")
            }
            for key in keys:
                if not chosen or key in chosen:
                    yield document, key, chosen.get(key, key)
