"""Draws who had how much time, who spent it, and what was left."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rich import box
from rich.table import Table
from rich.text import Text

from gateway.cli.console import length_text, one_line
from services.runtime.call import AttemptReport
from services.runtime.errors import Code
from services.runtime.topology import GATEWAY

BAR_WIDTH = 30
MIN_BAR_WIDTH = 12
WORKING, WAITING = "█", "░"
LEGEND = f"{WORKING} works itself  {WAITING} waits for the hop below"


@dataclass(slots=True)
class Row:
    """Is one attempt with the attempts below it."""

    report: AttemptReport
    children: list["Row"] = field(default_factory=list)

    @property
    def end_s(self) -> float:
        """Return when the attempt ended."""
        return self.report.start_s + self.report.used_s

    @property
    def own_s(self) -> float:
        """Return how long the hop worked itself: waits at the same time count once."""
        waited_s = 0.0
        until = self.report.start_s
        for start_s, end_s in self._waits():
            waited_s += max(0.0, end_s - max(start_s, until))
            until = max(until, end_s)
        return max(0.0, self.report.used_s - waited_s)

    def flat(self) -> Iterator["Row"]:
        """Yield this row and all below it, each before those that it called."""
        yield self
        for child in sorted(self.children, key=lambda row: row.report.start_s):
            yield from child.flat()

    def bar(self, axis_s: float, width: int) -> str:
        """Return the attempt drawn over the time axis; even the shortest shows."""
        cell_s = axis_s / width if axis_s > 0 else 1.0
        first = min(width - 1, max(0, int(self.report.start_s / cell_s)))
        last = min(width, max(first + 1, round(self.end_s / cell_s)))
        waits = self._waits()
        cells = (
            WAITING if any(a <= (i + 0.5) * cell_s < b for a, b in waits) else WORKING
            for i in range(first, last)
        )
        return " " * first + "".join(cells)

    def _waits(self) -> list[tuple[float, float]]:
        """Return when the hop waited for another, in the order of the beginnings."""
        spans = (
            (max(row.report.start_s, self.report.start_s), min(row.end_s, self.end_s))
            for row in self.children
        )
        return sorted(span for span in spans if span[0] < span[1])


def own_report(deadline_s: float, used_s: float, outcome: str) -> AttemptReport:
    """Return the client's own call as a report."""
    return AttemptReport(
        hop=GATEWAY,
        method="Run",
        depth=0,
        attempt=1,
        start_s=0.0,
        given_s=deadline_s,
        used_s=used_s,
        left_s=deadline_s - used_s,
        outcome=outcome,
    )


def tree(own: AttemptReport, reports: Sequence[AttemptReport]) -> Row:
    """Return the client's call with all that happened below it.

    Args:
        own: the client's call.
        reports: as the gateway told them: each after those that its hop caused.
    """
    open_rows: list[Row] = []
    for report in reports:
        row = Row(report)
        while open_rows and open_rows[-1].report.depth > report.depth:
            row.children.append(open_rows.pop())
        open_rows.append(row)
    # The gateway lists what it did itself; whatever lost its caller on the way hangs here too.
    return Row(own, open_rows)


def render(root: Row, width: int) -> Table:
    """Return the waterfall as a table for a console of some columns."""
    rows = list(root.flat())
    axis_s = max(row.end_s for row in rows)
    names = [_name(row) for row in rows]
    outcomes = [_outcome(row) for row in rows]
    taken = max(map(len, names)) + 4 * 8 + max(map(len, outcomes)) + 6
    bar_width = max(MIN_BAR_WIDTH, min(BAR_WIDTH, width - taken))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column("hop", no_wrap=True, overflow="ellipsis")
    for heading in ("given", "used", "itself", "left"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column(f"0 to {length_text(axis_s)}", no_wrap=True, width=bar_width)
    if any(outcomes):
        table.add_column("outcome", overflow="fold")
    for row, name, outcome in zip(rows, names, outcomes, strict=True):
        report = row.report
        style = "red" if outcome else "green"
        cells = [
            Text(name),
            Text(length_text(report.given_s)),
            Text(length_text(report.used_s)),
            Text(length_text(row.own_s)),
            Text(length_text(report.left_s)),
            _coloured(row.bar(axis_s, bar_width), style),
        ]
        if any(outcomes):
            cells.append(Text(outcome, style="red"))
        table.add_row(*cells)
    return table


def _coloured(bar: str, style: str) -> Text:
    text = Text(bar, style=style)
    text.highlight_regex(f"{WAITING}+", style="dim")
    return text


def _name(row: Row) -> str:
    report = row.report
    again = f" #{report.attempt}" if report.attempt > 1 else ""
    return f"{'  ' * report.depth}{one_line(report.hop)} {one_line(report.method)}{again}"


def _outcome(row: Row) -> str:
    # The reason says more than the code before it.
    outcome = one_line(row.report.outcome).rpartition("/")[2]
    return "" if outcome == Code.OK.name else outcome
