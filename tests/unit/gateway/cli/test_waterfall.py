"""Tests the arithmetic of the waterfall."""

import io

import pytest
from rich.console import Console

from gateway.cli.waterfall import WAITING, WORKING, Row, own_report, render, tree
from services.runtime.call import AttemptReport

OWN = own_report(30.0, 10.0, "OK")


def report(
    hop: str, depth: int, start_s: float, used_s: float, *, outcome: str = "OK", attempt: int = 1
) -> AttemptReport:
    return AttemptReport(hop, "Call", depth, attempt, start_s, 20.0, used_s, 15.0, outcome)


def names(row: Row) -> list[str]:
    return [each.report.hop for each in row.flat()]


def test_reports_in_the_order_of_their_ends_become_a_tree_in_the_order_of_their_starts() -> None:
    root = tree(
        OWN,
        [
            report("sql", 3, 1.0, 1.0),
            report("llm", 5, 3.0, 2.0),
            report("model", 4, 2.5, 3.0),
            report("summarise", 3, 2.0, 4.0),
            report("domain", 2, 0.5, 8.0),
            report("routing", 1, 0.1, 9.0),
        ],
    )

    assert names(root) == ["gateway", "routing", "domain", "sql", "summarise", "model", "llm"]


def test_a_report_whose_caller_was_lost_is_still_shown() -> None:
    root = tree(OWN, [report("routing", 1, 0.0, 1.0), report("model", 4, 2.0, 1.0)])

    assert names(root) == ["gateway", "routing", "model"]


def test_own_time_is_what_was_used_without_the_waits() -> None:
    root = tree(OWN, [report("tool", 2, 2.0, 3.0), report("routing", 1, 1.0, 6.0)])

    assert root.own_s == pytest.approx(4.0)
    assert root.children[0].own_s == pytest.approx(3.0)


def test_waits_at_the_same_time_count_once() -> None:
    root = tree(OWN, [report("a", 1, 1.0, 4.0), report("b", 1, 3.0, 4.0), report("c", 1, 4.0, 0.5)])

    assert root.own_s == pytest.approx(10.0 - 6.0)


def test_a_child_that_outlives_its_caller_takes_no_more_than_there_was() -> None:
    root = tree(own_report(30.0, 2.0, "OK"), [report("a", 1, 1.0, 50.0)])

    assert root.own_s == pytest.approx(1.0)


def test_bars_lie_on_the_axis_and_tell_work_from_waiting() -> None:
    root = tree(OWN, [report("tool", 1, 2.0, 4.0)])

    assert root.bar(10.0, 10) == WORKING * 2 + WAITING * 4 + WORKING * 4
    assert root.children[0].bar(10.0, 10) == "  " + WORKING * 4


@pytest.mark.parametrize(
    ("start_s", "used_s"), [(0.0, 0.0), (5.0, 0.001), (9.999, 0.0), (12.0, 1.0), (-0.1, 0.0)]
)
def test_even_the_shortest_and_the_oddest_attempt_shows_inside_of_the_axis(
    start_s: float, used_s: float
) -> None:
    row = Row(report("a", 1, start_s, used_s))

    bar = row.bar(10.0, 10)

    assert len(bar) <= 10
    assert bar.strip() == WORKING


def test_nothing_used_at_all_is_drawn_without_dividing_by_it() -> None:
    assert Row(own_report(30.0, 0.0, "OK")).bar(0.0, 10) == WORKING


@pytest.mark.parametrize("width", [40, 80, 120])
def test_the_table_fits_its_console_and_names_every_hop_and_failure(width: int) -> None:
    root = tree(
        own_report(30.0, 6.0, "ABORTED/DEPENDENCY_FAILED"),
        [report("model", 1, 1.0, 5.0, outcome="DEADLINE_EXCEEDED/SELF_TIMEOUT", attempt=2)],
    )
    console = Console(file=io.StringIO(), width=width, color_system=None)

    console.print(render(root, width))

    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert all(len(line) <= width for line in text.splitlines())
    if width == 120:
        assert "model Call #2" in text
        assert "SELF_TIMEOUT" in text
        assert "DEPENDENCY_FAILED" in text
        assert "30.00 s" in text


def test_names_from_the_wire_cannot_move_the_cursor() -> None:
    root = tree(OWN, [report("\x1b[2Jmodel", 1, 1.0, 5.0)])
    console = Console(file=io.StringIO(), width=120, color_system=None)

    console.print(render(root, 120))

    assert "\x1b" not in console.file.getvalue()  # type: ignore[attr-defined]
