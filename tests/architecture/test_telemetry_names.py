"""Holds every name that a log shows to one file."""

import ast
import re

from services.runtime import telemetry
from tests.architecture.sources import Source, parse, product
from tests.requirements import requirement

OWNER = "services/runtime/telemetry.py"
LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}


def literal_events(source: Source) -> list[str]:
    """Return ``file:line`` of every log call whose event is written out instead of named."""
    return [
        f"{source.name}:{node.lineno}"
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in LEVELS
        and re.search(r"(^|[._])log(ger)?(\(\))?$", ast.unparse(node.func.value))
        and node.args
        and not isinstance(node.args[0], ast.Name | ast.Attribute)
    ]


def test_an_event_written_out_is_found() -> None:
    source = parse("self._log.info('x')\nlog.error(f'x {y}')\nlog.info(EVENT)\nblog.info('x')\n")

    assert literal_events(source) == ["sample.py:1", "sample.py:2"]


@requirement("telemetry:names-in-one-file")
def test_log_events_are_named_in_telemetry_only() -> None:
    found = [place for source in product() for place in literal_events(source)]

    assert not found


@requirement("telemetry:names-in-one-file")
def test_no_two_names_mean_one_event() -> None:
    values = [
        value
        for name, value in vars(telemetry).items()
        if name.isupper() and not name.startswith("_") and isinstance(value, str)
    ]

    assert values
    assert len(values) == len(set(values))
