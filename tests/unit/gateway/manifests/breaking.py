"""Breaks one line of manifests that are as they should be."""

from pathlib import Path

from gateway.manifests.checking import ManifestReport, check_manifests
from gateway.manifests.cluster import sort_out
from gateway.manifests.documents import read_manifests
from gateway.manifests.embedded import embedded_in, write_out
from gateway.manifests.pod_configs import read_pods
from services.runtime.checks.finding import Severity
from services.runtime.config import load_config

SUITE = Path(__file__).with_name("suite.yaml").read_text(encoding="utf-8")


def broken(old: str, new: str) -> str:
    """Return the manifests with one text replaced; it must be there exactly once."""
    assert SUITE.count(old) == 1, f"{SUITE.count(old)} × {old}"
    return SUITE.replace(old, new)


def checked(text: str, folder: Path, **variables: str) -> ManifestReport:
    """Return what is found in manifests, with their own configuration and these settings."""
    file = folder / "suite.yaml"
    file.write_text(text, encoding="utf-8")
    return examined(file, folder, **variables)


def examined(path: Path, folder: Path, **variables: str) -> ManifestReport:
    """Return what is found in a file or a folder of manifests; what is written goes to a folder."""
    reading = read_manifests(path)
    embedded = embedded_in(reading.documents)
    file = write_out(embedded[0], folder) if embedded else None
    environ = {f"SIXHOP_{name}": value for name, value in variables.items()}
    config = load_config(file or Path("/dev/null"), environ)
    cluster = sort_out(reading.documents)
    return check_manifests(reading, cluster, read_pods(cluster, None, folder), config)


def rules_found(text: str, folder: Path, **variables: str) -> set[str]:
    """Return the names of the rules that find something."""
    return {finding.rule for finding in checked(text, folder, **variables).findings}


def texts_found(rule: str, text: str, folder: Path, **variables: str) -> list[str]:
    """Return what one rule finds, whatever others do."""
    findings = checked(text, folder, **variables).findings
    return [each.text for each in findings if each.rule == rule]


def assert_found_alone(
    severity: Severity, rule: str, change: tuple[str, str], words: str, folder: Path
) -> None:
    """Hold that one wrong line is found by its rule and no other, and told with its object."""
    report = checked(broken(*change), folder)
    assert {(finding.rule, finding.severity) for finding in report.findings} == {(rule, severity)}
    assert any(words in finding.text for finding in report.findings)
    # Every finding says in which object of which file.
    assert all(finding.text.startswith(str(folder)) for finding in report.findings)
