"""Finds the configuration that a command line names: a file, or a profile that ships with us."""

from pathlib import Path

from gateway import profiles

FOLDER = Path(profiles.__file__).parent
SUFFIX = ".toml"


def named(path: Path | None) -> Path | None:
    """Return the file of a configuration; a profile's name stands for its file.

    A file of that name in the working folder comes first: it is what was written down here.
    """
    if path is None or path.parent != Path() or path.suffix or path.exists():
        return path
    profile = FOLDER / f"{path.name}{SUFFIX}"
    return profile if profile.is_file() else path


def known() -> list[str]:
    """Return the names of the profiles."""
    return sorted(file.stem for file in FOLDER.glob(f"*{SUFFIX}"))
