"""Saves the files of an answer, whatever they are named."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath

from gateway.cli.events import Artefact
from gateway.cli.problem import FailedError, RefusedError

DEFAULT_FOLDER = Path("sixhop-out")
MAX_NAME_CHARS = 120
_UNSAFE = re.compile(r'[\x00-\x1f\x7f-\x9f<>:"/\\|?*]')


@dataclass(frozen=True, slots=True)
class SavedFile:
    """Is a file of an answer, and where it is now."""

    name: str
    media_type: str
    byte_count: int
    path: str


def require_folder(folder: Path) -> None:
    """Refuse a folder that nothing could be written to, before the run begins.

    Raises:
        RefusedError: it is a file, or cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RefusedError(
            f"--out {folder}: files cannot be written there: {error.strerror}", reason="BAD_OUT"
        ) from None


def save(artefacts: Sequence[Artefact], folder: Path) -> list[SavedFile]:
    """Write the files and return where they are; nothing that exists is overwritten.

    Raises:
        FailedError: a file cannot be written.
    """
    saved: list[SavedFile] = []
    for artefact in artefacts:
        name = safe_name(artefact.name)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path = _write_new(folder, name, artefact.content)
        except OSError as error:
            raise FailedError(
                f"{folder / name} cannot be written: {error.strerror}; name another folder "
                "with --out",
                reason="OUT_UNWRITABLE",
            ) from None
        saved.append(SavedFile(name, artefact.media_type, len(artefact.content), str(path)))
    return saved


def safe_name(name: str) -> str:
    """Return the last part of a name, without what a file system or a terminal takes for more."""
    last = PureWindowsPath(PurePosixPath(name).name).name
    safe = _UNSAFE.sub("_", last.encode("utf-8", "replace").decode()).strip(" .")
    path = PurePosixPath(safe or "file")
    suffix = path.suffix[:16]
    return path.name.removesuffix(path.suffix)[: MAX_NAME_CHARS - len(suffix)] + suffix


def _write_new(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    count = 1
    while True:
        try:
            with path.open("xb") as file:
                file.write(content)
        except FileExistsError:
            count += 1
            path = folder / f"{Path(name).stem}-{count}{Path(name).suffix}"
        else:
            return path
