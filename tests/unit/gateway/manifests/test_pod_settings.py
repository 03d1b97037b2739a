"""Tests what the process of a pod reads, as its manifests give it."""

from pathlib import Path

import pytest

from gateway.manifests.cluster import Cluster, sort_out
from gateway.manifests.documents import read_manifests
from gateway.manifests.pod_settings import PodSettings, pod_settings

MAPS = """\
kind: ConfigMap
metadata: {name: file}
data: {sixhop.toml: "[log]", other.toml: "[retry]"}
---
kind: ConfigMap
metadata: {name: values}
data: {SIXHOP_LOG__LEVEL: info, SIXHOP_RETRY__MAX_ATTEMPTS: "3", HOST: h}
---
"""
POD = """\
kind: Deployment
metadata: {name: tool}
spec: {template: {spec: {
  volumes: [{name: v, VOLUME}],
  containers: [{name: tool, command: [python, -m, services.tool], CONTAINER}]}}}
"""


def read(folder: Path, container: str, volume: str = "configMap: {name: file}") -> PodSettings:
    """Return what the pod of one container reads."""
    file = folder / "pod.yaml"
    text = MAPS + POD.replace("CONTAINER", container).replace("VOLUME", volume)
    file.write_text(text, encoding="utf-8")
    cluster: Cluster = sort_out(read_manifests(file).documents)
    (workload,) = cluster.workloads
    return pod_settings(workload, cluster)


@pytest.mark.parametrize(
    ("container", "known", "unknown"),
    [
        ("env: [{name: SIXHOP_A__B, value: 5}, {name: C, value: x}]", {"SIXHOP_A__B": "5"}, ()),
        ("env: [{name: SIXHOP_A__B}]", {}, ("SIXHOP_A__B",)),
        (
            "envFrom: [{configMapRef: {name: values}}], env: [{name: SIXHOP_LOG__LEVEL, value: w}]",
            {"SIXHOP_LOG__LEVEL": "w", "SIXHOP_RETRY__MAX_ATTEMPTS": "3"},
            (),
        ),
        (
            "envFrom: [{configMapRef: {name: values}, prefix: SIXHOP_X__}]",
            {
                "SIXHOP_X__SIXHOP_LOG__LEVEL": "info",
                "SIXHOP_X__SIXHOP_RETRY__MAX_ATTEMPTS": "3",
                "SIXHOP_X__HOST": "h",
            },
            (),
        ),
        (
            "env: [{name: SIXHOP_A__B, valueFrom: {configMapKeyRef: {name: values, key: HOST}}}]",
            {"SIXHOP_A__B": "h"},
            (),
        ),
        (
            "env: [{name: SIXHOP_A__B, valueFrom: {configMapKeyRef: {name: gone, key: HOST}}}]",
            {},
            ("SIXHOP_A__B",),
        ),
        (
            "env: [{name: K, valueFrom: {secretKeyRef: {name: s, key: k}}},"
            " {name: SIXHOP_A__B, value: x-$(K)}, {name: P, value: 1},"
            " {name: SIXHOP_C__D, value: '$(P)-$$(P)-$(NOBODY)'}]",
            {"SIXHOP_C__D": "1-$(P)-$(NOBODY)"},
            ("SIXHOP_A__B",),
        ),
        (
            "env: [{name: SIXHOP_A__B, valueFrom: {fieldRef: {fieldPath: x}}},"
            " {name: SIXHOP_A__B, value: last}]",
            {"SIXHOP_A__B": "last"},
            (),
        ),
    ],
)
def test_variables_have_the_values_that_the_cluster_would_give_them(
    container: str, known: dict[str, str], unknown: tuple[str, ...], tmp_path: Path
) -> None:
    settings = read(tmp_path, container)

    assert (settings.environ, settings.unknown) == (known, unknown)


NAMED = "env: [{name: SIXHOP_CONFIG, value: /etc/sixhop/sixhop.toml}]"
MOUNT = "volumeMounts: [{name: v, mountPath: /etc/sixhop}]"
ONE_FILE = "volumeMounts: [{name: v, mountPath: /etc/sixhop/sixhop.toml, subPath: other.toml}]"


@pytest.mark.parametrize(
    ("container", "volume", "text"),
    [
        (f"{NAMED}, {MOUNT}", "configMap: {name: file}", "[log]"),
        (f"args: [--flag, /etc/sixhop/other.toml], {MOUNT}", "configMap: {name: file}", "[retry]"),
        (f"workingDir: /etc/sixhop, {MOUNT}", "configMap: {name: file}", "[log]"),
        (
            f"{NAMED}, {MOUNT}",
            "configMap: {name: file, items: [{key: other.toml, path: sixhop.toml}]}",
            "[retry]",
        ),
        (f"{NAMED}, {MOUNT}", "projected: {sources: [{configMap: {name: file}}]}", "[log]"),
        (f"{NAMED}, {ONE_FILE}", "configMap: {name: file}", "[retry]"),
    ],
)
def test_a_file_is_what_a_config_map_puts_where_the_process_looks(
    container: str, volume: str, text: str, tmp_path: Path
) -> None:
    settings = read(tmp_path, container, volume)

    assert settings.file is not None
    assert settings.file.text == text
    assert "SIXHOP_CONFIG" not in settings.environ


@pytest.mark.parametrize(
    ("container", "volume", "beside"),
    [
        (NAMED, "configMap: {name: file}", None),
        (MOUNT, "configMap: {name: file}", None),
        (f"{NAMED}, {MOUNT}", "secret: {secretName: file}", None),
        (f"{NAMED}, {MOUNT}", "configMap: {name: values}", "values"),
        (f"{NAMED}, {MOUNT}", "configMap: {name: file, items: [{key: a, path: b}]}", None),
        (
            f"{NAMED}, {MOUNT}",
            "configMap: {name: file, items: [{key: other.toml, path: x}]}",
            "file",
        ),
    ],
)
def test_a_file_that_nothing_puts_there_is_not_found(
    container: str, volume: str, beside: str | None, tmp_path: Path
) -> None:
    settings = read(tmp_path, container, volume)

    assert settings.file is None
    assert (settings.beside and settings.beside.name) == beside
