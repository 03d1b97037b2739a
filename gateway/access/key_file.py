"""Keeps keys in a file that only its owner can read."""

import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from gateway import profiles
from gateway.access.keys import KeyList, KeyRecord, read_keys

DEFAULT = Path(".sixhop/keys.json")
"""Where keys are kept, beside the configuration."""
MAX_BYTES = 4 * 1024 * 1024
"""A larger file is none of ours; some ten thousand keys fit."""
_PROFILES = Path(profiles.__file__).parent

Change = Callable[[Sequence[KeyRecord]], Sequence[KeyRecord]]
"""Returns what the file is to hold, from what it holds."""


class KeyFileError(Exception):
    """Says why a file of keys cannot be read or written, and what to do."""


def keys_path(configured: Path | None, source: str) -> Path:
    """Return where keys are kept.

    Args:
        configured: where the configuration wants them, if it does.
        source: the configuration file; empty without one. A profile that ships with us is nobody's
            folder: its keys are in the working folder.
    """
    if configured is not None:
        return configured
    folder = Path(source).parent if source else Path()
    return DEFAULT if folder == _PROFILES else folder / DEFAULT


def stored(path: Path) -> Sequence[KeyRecord]:
    """Return the keys of a file; none when there is no file.

    Raises:
        KeyFileError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return read_keys(file.read(MAX_BYTES))
    except FileNotFoundError:
        return ()
    except (OSError, ValueError) as error:
        raise KeyFileError(f"{path} cannot be read: {_told(error)}; restore it") from None


def change(path: Path, changed: Change) -> None:
    """Change a file of keys as a whole: whoever reads it sees the old one or the new one.

    Raises:
        KeyFileError: it cannot be read or written, or somebody else is writing it.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _alone(path):
            content = KeyList(keys=tuple(changed(stored(path)))).model_dump_json(indent=2)
            _replace(path, content.encode())
    except OSError as error:
        raise KeyFileError(f"{path} cannot be written: {_told(error)}") from None


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Keep others from changing the file while the block runs, so that no key is lost."""
    with path.with_name(f"{path.name}.lock").open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise KeyFileError(f"{path} is being changed by another command; try again") from None
        yield


def _replace(path: Path, content: bytes) -> None:
    # Made with mode 0600, in the same folder, so that to rename it is one step. A link is followed:
    # what it names is replaced.
    path = path.resolve()
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _told(error: Exception) -> str:
    return error.strerror or type(error).__name__ if isinstance(error, OSError) else str(error)
