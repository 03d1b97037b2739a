"""Makes of an overlay what a cluster would get, by kubectl itself."""

from dataclasses import dataclass
from pathlib import Path

from gateway.manifests.documents import Document, read_text
from k8s.validation.commands import installed, run

K8S = Path(__file__).resolve().parents[1]
OVERLAYS = K8S / "overlays"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """Is what a cluster would get."""

    name: str
    """The overlay's."""
    text: str
    documents: tuple[Document, ...]
    findings: tuple[str, ...]
    """What kubectl says while it works: something outdated, for one."""


def overlays() -> list[Path]:
    """Return the folders of all overlays."""
    return sorted(path.parent for path in OVERLAYS.glob("*/kustomization.yaml"))


def render(overlay: Path) -> Rendered:
    """Return what an overlay makes.

    Raises:
        CommandError: kubectl cannot make anything of it.
    """
    done = run(installed("kubectl"), ["kustomize", str(overlay)])
    reading = read_text(overlay.name, done.stdout)
    said = [f"{overlay}: {line}" for line in done.stderr.splitlines() if line.strip()]
    return Rendered(
        name=overlay.name,
        text=done.stdout,
        documents=reading.documents,
        findings=(*said, *reading.unreadable),
    )
