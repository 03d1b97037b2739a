"""Tests that pods are read as they would start, and that a file that is missed is told."""

from pathlib import Path

import pytest

from gateway.manifests.cluster import sort_out
from gateway.manifests.documents import read_manifests
from gateway.manifests.pod_configs import Pod, read_pods
from services.runtime.checks.finding import Severity
from tests.unit.gateway.manifests.breaking import SUITE, broken, checked

CONFIG = "            - {name: SIXHOP_CONFIG, value: /etc/sixhop/sixhop.toml}\n"


def pod(folder: Path, text: str, named: Path | None = None) -> Pod:
    """Return the pod of manifests."""
    file = folder / "suite.yaml"
    file.write_text(text, encoding="utf-8")
    (found,) = read_pods(sort_out(read_manifests(file).documents), named, folder)
    return found


def test_a_pod_has_its_file_and_its_variables_over_it(tmp_path: Path) -> None:
    found = pod(tmp_path, SUITE)

    assert (found.hop, found.problem) == ("routing", "")
    assert found.config is not None
    assert found.config.hop("routing").drain_timeout_s == 116
    assert found.config.log.level == "warning"


def test_a_file_that_is_named_is_that_of_every_pod(tmp_path: Path) -> None:
    named = tmp_path / "mine.toml"
    named.write_text("[routing]\ndrain_timeout_s = 7\n", encoding="utf-8")

    found = pod(tmp_path, SUITE, named)

    assert found.config is not None
    assert found.config.hop("routing").drain_timeout_s == 7


def test_a_pod_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    found = pod(tmp_path, broken("value: warning", "value: loud"))

    assert found.config is None
    assert found.problem.startswith('[log] level = "loud" (SIXHOP_LOG__LEVEL): write one of')


@pytest.mark.parametrize(
    ("old", "new", "severity", "words"),
    [
        (CONFIG, "", Severity.WARNING, "it reads no file, because nothing puts"),
        (
            "/etc/sixhop/sixhop.toml",
            "/opt/sixhop.toml",
            Severity.WARNING,
            "it reads /opt/sixhop.toml, and no ConfigMap here is mounted there",
        ),
        (
            "/etc/sixhop/sixhop.toml",
            "/etc/sixhop/sixhop.tml",
            Severity.VIOLATION,
            "it looks for /etc/sixhop/sixhop.tml, and",
        ),
    ],
)
def test_a_pod_that_does_not_find_the_file_that_is_meant_is_told(
    old: str, new: str, severity: Severity, words: str, tmp_path: Path
) -> None:
    found = checked(broken(old, new), tmp_path).findings

    (told,) = [finding for finding in found if finding.rule == "configuration-read"]
    assert told.severity is severity
    assert words in told.text
    assert told.text.startswith(str(tmp_path))
