"""Tests how the words of a room are understood."""

import json

import pytest

from gateway.cli.rooms import Opinion, merged, said
from services.runtime.checks.finding import Finding, Severity

FOUND = {"event": "check_found", "rule": "r", "severity": "warning", "problem": "hm"}
WARNING = Finding(rule="r", severity=Severity.WARNING, text="hm")


def test_a_refusal_is_told_in_the_rooms_own_words() -> None:
    output = 'noise\n{"event":"refused_to_start","problem":"tool.max_rows: too small"}\n'

    assert said("tool", output, well=False) == Opinion(("tool.max_rows: too small",))


def test_what_a_room_has_found_is_told_with_its_rule_and_severity() -> None:
    output = f'noise\n{{"x": 1}}\n[1]\n{json.dumps(FOUND)}\n'

    assert said("tool", output, well=True) == Opinion((), (WARNING,))


@pytest.mark.parametrize("severity", [None, "unheard of"])
def test_a_finding_of_a_later_release_is_no_less_than_a_violation(severity: str | None) -> None:
    output = json.dumps(FOUND | {"severity": severity})

    (finding,) = said("tool", output, well=False).findings

    assert finding.severity is Severity.VIOLATION


def test_what_a_room_only_misses_on_this_machine_is_told_apart() -> None:
    events = [
        {"event": "refused_to_start", "problem": "no folder", "missing_file": True},
        {"event": "refused_to_start", "problem": "no number", "missing_file": False},
    ]

    opinion = said("tool", "\n".join(map(json.dumps, events)), well=False)

    assert opinion == Opinion(("no folder", "no number"), (), ("no folder",))


def test_a_crash_is_told_with_the_room_and_its_last_line() -> None:
    output = "Traceback:\n  File x\nImportError: no duckdb\n"

    assert said("tool", output, well=False) == Opinion(("tool: ImportError: no duckdb",))


def test_a_silent_crash_is_told_as_one() -> None:
    assert said("tool", "", well=False) == Opinion(("tool: it failed and said nothing",))


def test_a_room_that_is_content_says_nothing() -> None:
    assert said("tool", "some library's noise\n", well=True) == Opinion()


def test_what_several_have_found_is_told_once() -> None:
    both = [Opinion(("a",), (WARNING,)), Opinion(("b", "a"), (WARNING,))]

    assert merged(both) == Opinion(("a", "b"), (WARNING,))
