"""Says what a traffic takes: the verb `plan`."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.cli.console import PIPED_WIDTH, open_console, until_reader_leaves, write_json
from gateway.cli.plan_report import document, show
from gateway.cli.problem import EXIT_OK, FailedError, RefusedError
from gateway.planning.fitting import PlanError
from gateway.planning.plan import make_plan
from gateway.planning.traffic import read_traffic
from services.runtime.config import ConfigError, load_config
from services.runtime.topology import LLM


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """Holds what the command line said; None where it said nothing."""

    qps: float | None
    peak_factor: float | None
    p50_s: float | None
    p99_s: float | None
    chunks: float | None
    utilisation: float | None
    traffic_path: Path | None
    config_path: Path | None
    as_json: bool

    def fields(self) -> dict[str, Any]:
        """Return those fields of a traffic that were said."""
        said = {
            "qps": self.qps,
            "peak_factor": self.peak_factor,
            "chunks": self.chunks,
            "utilisation": self.utilisation,
            LLM: _said({"p50_s": self.p50_s, "p99_s": self.p99_s}) or None,
        }
        return _said(said)


async def plan(environ: Mapping[str, str], options: PlanOptions) -> int:
    """Show what a traffic takes.

    Returns:
        0; whatever cannot be planned is raised.

    Raises:
        RefusedError: the traffic or the configuration is wrong.
        FailedError: the deadlines of the configuration cannot hold the traffic.
    """
    try:
        config = load_config(options.config_path, environ)
        traffic = read_traffic(options.traffic_path, options.fields())
        made = make_plan(traffic, config)
    except ConfigError as error:
        raise RefusedError(str(error)) from None
    except PlanError as error:
        raise FailedError(str(error), reason="LADDER_TOO_SHORT") from None
    with until_reader_leaves():
        if options.as_json:
            write_json(sys.stdout, document(made, config.source))
        else:
            console = open_console(sys.stdout)
            # A narrow terminal may break lines, but no number may be cut.
            console.width = max(console.width, PIPED_WIDTH)
            show(console, made, config.source)
    return EXIT_OK


def _said(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}
