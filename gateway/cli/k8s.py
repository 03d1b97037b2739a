"""Writes what of the Kubernetes manifests follows from the configuration: the verb `k8s render`."""

import sys
from pathlib import Path

from gateway.cli.console import until_reader_leaves
from gateway.cli.problem import EXIT_FAILED, EXIT_OK, RefusedError
from gateway.manifests.rendering.render import SETTINGS, differences, rendered, write
from services.runtime.config import ConfigError, load_config


async def render(folder: Path, config_path: Path | None, *, check_only: bool) -> int:
    """Write the files, or tell how those that are there differ.

    The environment has no say: the files are the same on every machine.

    Args:
        folder: the manifests.
        config_path: what they follow from; None takes `base/sixhop.toml` of the folder.
        check_only: whether to write nothing.

    Returns:
        0 when the files are as they should be, 1 when they were only checked and are not.

    Raises:
        RefusedError: the configuration cannot be read, or a file not be written.
    """
    try:
        files = rendered(load_config(config_path or folder / SETTINGS, {}), folder)
        if check_only:
            return _tell(differences(files, folder), folder)
        changed = write(files, folder)
    except ConfigError as error:
        raise RefusedError(str(error), reason="BAD_CONFIG") from None
    except (OSError, UnicodeDecodeError) as error:
        raise RefusedError(f"{error}; is {folder} yours to change?") from None
    with until_reader_leaves():
        for path in changed:
            sys.stdout.write(f"{folder / path}\n")
        sys.stdout.write(f"{len(changed)} of {len(files)} files were not as they are now\n")
    return EXIT_OK


def _tell(text: str, folder: Path) -> int:
    if not text:
        return EXIT_OK
    with until_reader_leaves():
        sys.stdout.write(text)
    sys.stderr.write(f"sixhop: run `sixhop k8s render --output {folder}`, or undo what differs\n")
    return EXIT_FAILED
