"""Finds the configuration that manifests give to the hops."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gateway.manifests.documents import Document
from services.runtime.checks.finding import Finding, Severity
from services.runtime.config import DEFAULT_FILE


@dataclass(frozen=True, slots=True)
class Embedded:
    """Is one configuration inside a ConfigMap."""

    document: Document
    key: str
    text: str

    @property
    def where(self) -> str:
        """Return where it stands."""
        return f"{self.document.where}, {self.key}"


def embedded_in(documents: tuple[Document, ...]) -> list[Embedded]:
    """Return the configurations: every `sixhop.toml`, and what ends like it, of a ConfigMap."""
    return [
        Embedded(document, str(key), text)
        for document in documents
        if document.kind == "ConfigMap" and isinstance(document.at("data"), dict)
        for key, text in document.at("data").items()
        if str(key).endswith(DEFAULT_FILE) and isinstance(text, str)
    ]


def write_out(found: Embedded, folder: Path) -> Path:
    """Write a configuration to a file in a folder, as a pod mounts it; return the file."""
    file = folder / DEFAULT_FILE
    file.write_text(found.text, encoding="utf-8")
    return file


def several(found: list[Embedded]) -> Iterator[Finding]:
    """Yield that there is more than one configuration, if so: which one holds is not known."""
    if len({each.text for each in found}) > 1:
        yield Finding(
            rule="one-configuration",
            severity=Severity.WARNING,
            text=(
                f"{' and '.join(each.where for each in found)} differ; the first is taken for the "
                "manifests, or name one with --config"
            ),
        )
