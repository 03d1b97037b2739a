"""Loads what each pod is configured to, and says where a pod would not find what is meant."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gateway.manifests.cluster import Cluster
from gateway.manifests.documents import Document
from gateway.manifests.embedded import embedded_in, write_out
from gateway.manifests.pod_settings import PodSettings, pod_settings
from services.runtime.checks.finding import Finding, violation, warning
from services.runtime.config import CONFIG_VARIABLE, Config, ConfigError, load_config
from services.runtime.environment import SEPARATOR

NO_FILE = Path("/dev/null")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """Is what runs one hop, with what its process reads."""

    settings: PodSettings
    file: Path
    """The same file on this machine; an empty one when it finds none."""
    config: Config | None
    """What follows for every hop; None when it cannot be read."""
    problem: str
    """Why not; empty when it can."""

    @property
    def hop(self) -> str:
        """Return the hop that it runs."""
        return self.settings.workload.hop

    @property
    def where(self) -> str:
        """Return where it stands."""
        return self.settings.where


def read_pods(cluster: Cluster, named: Path | None, folder: Path) -> tuple[Pod, ...]:
    """Return the pods of manifests as they would start.

    Args:
        cluster: the manifests.
        named: the file that all of them are to have; None takes what each of them finds.
        folder: where their files are written to.
    """
    pods: list[Pod] = []
    for number, workload in enumerate(cluster.workloads):
        settings = pod_settings(workload, cluster)
        pods.append(_read(settings, named or _written(settings, folder / f"pod-{number}")))
    return tuple(pods)


def _written(settings: PodSettings, folder: Path) -> Path:
    if settings.file is None:
        return NO_FILE
    folder.mkdir(exist_ok=True)
    return write_out(settings.file, folder)


def _read(settings: PodSettings, file: Path) -> Pod:
    # What comes from a Secret has a value that nobody knows here, and a name that may be wrong.
    names = dict.fromkeys((name for name in settings.unknown if SEPARATOR not in name), "")
    config, problem = None, ""
    try:
        config = load_config(file, {**settings.environ, **names})
    except ConfigError as error:
        problem = str(error)
    return Pod(settings=settings, file=file, config=config, problem=problem)


def config_findings(pods: tuple[Pod, ...], documents: tuple[Document, ...]) -> Iterator[Finding]:
    """Yield what cannot be read, and where a file is meant and not found."""
    meant = embedded_in(documents)
    for pod in pods:
        if pod.problem:
            yield violation("settings-readable", f"{pod.where}: {pod.problem}")
        settings = pod.settings
        if pod.file != NO_FILE:
            continue
        if settings.beside is not None:
            keys = ", ".join(settings.beside.at("data"))
            yield violation(
                "configuration-read",
                f"{pod.where}: it looks for {settings.path}, and {settings.beside.where} has no "
                f"such file; it has {keys}",
            )
        elif settings.named:
            yield warning(
                "configuration-read",
                f"{pod.where}: it reads {settings.path}, and no ConfigMap here is mounted there, "
                "so nobody has looked at it; name the file with --config to have it checked",
            )
        elif meant:
            yield warning(
                "configuration-read",
                f"{pod.where}: it reads no file, because nothing puts {meant[0].where} into the "
                f"pod; mount it and set {CONFIG_VARIABLE} to its path",
            )
