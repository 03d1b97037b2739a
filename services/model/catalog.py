"""Chooses the backend that the settings name, among those that are there."""

from collections.abc import Sequence
from pathlib import Path

from services.model.backend import Backend
from services.runtime.config import ConfigError
from services.runtime.plugins import PluginError, discover

ENTRY_POINT_GROUP = "sixhop.backends"
BUILT_IN_DIR = Path(__file__).parent / "backends"
BUILT_IN_PACKAGE = "services.model.backends"


def find_backend(name: str, extra_folders: Sequence[Path] = ()) -> Backend:
    """Return the backend of this name.

    Raises:
        ConfigError: there is none, there are two, or one does not load; the message says which.
    """
    known: dict[str, str] = {}
    chosen: Backend | None = None
    for origin, exported in _exported(extra_folders):
        if not isinstance(exported, Backend):
            raise ConfigError(f"{origin}: BACKEND must be a Backend, not {type(exported).__name__}")
        if exported.name in known:
            raise ConfigError(
                f"{origin}: the name {exported.name!r} is already taken by "
                f"{known[exported.name]}; give this backend another"
            )
        known[exported.name] = origin
        if exported.name == name:
            chosen = exported
    if chosen is None:
        raise ConfigError(
            f"model.backend = {name!r}: there is no such backend; known: {', '.join(sorted(known))}"
        )
    return chosen


def _exported(extra_folders: Sequence[Path]) -> list[tuple[str, object]]:
    try:
        return list(
            discover(
                BUILT_IN_DIR,
                BUILT_IN_PACKAGE,
                extra_folders=extra_folders,
                group=ENTRY_POINT_GROUP,
                constant="BACKEND",
            )
        )
    except PluginError as error:
        raise ConfigError(f"model.backend_dirs: {error}") from error
