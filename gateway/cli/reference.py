"""Prints the whole configuration as a file that says what everything means."""

import sys
from collections.abc import Mapping
from pathlib import Path

from gateway.cli.console import until_reader_leaves
from gateway.cli.parts import naming
from gateway.cli.problem import EXIT_OK, RefusedError
from gateway.cli.rooms import room_texts
from gateway.config import GatewaySettings
from services.runtime.config import ConfigError, load_config
from services.runtime.config_text import own_text, shared_text
from services.runtime.topology import GATEWAY

HEADER = """\
# Every setting of sixhop with the value that holds here, from the file, the environment and the
# defaults. Keys are not shown: give them by environment, such as SIXHOP_MODEL__API_KEY.
"""


async def print_config(environ: Mapping[str, str], path: Path | None) -> int:
    """Write the whole configuration that holds as a `sixhop.toml` with comments.

    Raises:
        RefusedError: it cannot be read.
    """
    try:
        config = load_config(path, environ)
        texts = [shared_text(config), own_text(GATEWAY, GatewaySettings, config)]
    except ConfigError as error:
        raise RefusedError(str(error), reason="BAD_CONFIG") from None
    texts += await room_texts(naming(environ, path))
    with until_reader_leaves():
        sys.stdout.write("\n".join([HEADER, *texts]))
    return EXIT_OK
