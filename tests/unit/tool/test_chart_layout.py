"""Tests where the parts of a chart are, with letters that are half as wide as high."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from services.tool.chart_axis import value_axis
from services.tool.chart_layout import PALETTE, laid_out
from services.tool.chart_spec import ChartSpec, Series
from services.tool.drawing import Dot, Drawing, Label, Polyline, Rectangle

WIDTH, HEIGHT = 600.0, 300.0


def measure(text: str, size: float, *, bold: bool = False) -> float:
    return len(text) * size * 0.5


def chart(shown: str, *values: float | None, **more: object) -> ChartSpec:
    labels = [f"n{number}" for number in range(len(values))]
    return ChartSpec.model_validate(
        {"kind": shown, "labels": labels, "series": [{"values": values}]} | more
    )


def drawn(spec: ChartSpec) -> Drawing:
    return laid_out(spec, width=WIDTH, height=HEIGHT, measure=measure)


def bars(drawing: Drawing) -> list[Rectangle]:
    return [shape for shape in drawing.shapes if isinstance(shape, Rectangle)]


def texts(drawing: Drawing) -> list[str]:
    return [shape.text for shape in drawing.shapes if isinstance(shape, Label)]


def test_heights_of_bars_are_in_proportion_to_their_values() -> None:
    one, two, four = bars(drawn(chart("bar", 1, 2, 4)))

    assert two.height == pytest.approx(2 * one.height)
    assert four.height == pytest.approx(4 * one.height)


def test_negative_bars_hang_from_the_line_that_positive_ones_stand_on() -> None:
    up, down = bars(drawn(chart("bar", 3, -3)))

    assert up.y + up.height == pytest.approx(down.y)
    assert up.height == pytest.approx(down.height)


def test_a_missing_value_has_no_bar() -> None:
    assert len(bars(drawn(chart("bar", 1, None, 3)))) == 2


def test_a_line_has_a_gap_where_a_value_is_missing() -> None:
    drawing = drawn(chart("line", 1, 2, None, 4, 5))

    runs = [s for s in drawing.shapes if isinstance(s, Polyline) and s.color == PALETTE[0]]
    assert [len(run.points) for run in runs] == [2, 2]


def test_a_value_between_two_gaps_is_a_dot() -> None:
    drawing = drawn(chart("line", None, 2, None))

    assert len([shape for shape in drawing.shapes if isinstance(shape, Dot)]) == 1


def test_several_series_have_a_legend_and_colours_of_their_own() -> None:
    spec = ChartSpec(
        kind="bar",
        labels=("a",),
        series=(Series(name="Q2", values=(1,)), Series(name="Q3", values=(2,))),
    )

    drawing = drawn(spec)

    assert {"Q2", "Q3"} <= set(texts(drawing))
    assert {bar.color for bar in bars(drawing)} == set(PALETTE[:2])


def test_one_series_has_no_legend() -> None:
    assert "only" not in texts(drawn(chart("bar", 1, series=[{"name": "only", "values": [1]}])))


def test_bars_with_names_too_long_to_stand_below_lie_down() -> None:
    labels = [f"A rather long name of a product, number {number}" for number in range(8)]

    drawing = drawn(chart("bar", *range(1, 9), labels=labels))

    first, last = bars(drawing)[0], bars(drawing)[-1]
    assert first.x == pytest.approx(last.x)
    assert last.width == pytest.approx(8 * first.width)


def test_names_of_many_points_in_time_do_not_run_into_each_other() -> None:
    labels = [f"2026-01-{number:02d}" for number in range(200)]

    drawing = drawn(chart("line", *range(200), labels=labels))

    shown = sorted(
        (s.x - measure(s.text, s.size) / 2, s.x + measure(s.text, s.size) / 2)
        for s in drawing.shapes
        if isinstance(s, Label) and s.text.startswith("2026-")
    )
    assert len(shown) > 5
    assert all(end < start for (_, end), (start, _) in pairwise(shown))


def test_bars_begin_at_zero_even_when_their_values_lie_close_together() -> None:
    assert value_axis(chart("bar", 98, 100)).ticks[0] == 0
    assert value_axis(chart("line", 98, 100)).ticks[0] > 90


@given(
    st.lists(st.floats(-1e12, 1e12).map(lambda value: round(value, 3)), min_size=1, max_size=20),
    st.sampled_from(["bar", "line"]),
)
def test_every_value_lies_between_the_ends_of_the_axis(values: list[float], kind: str) -> None:
    axis = value_axis(chart(kind, *values))

    assert list(axis.ticks) == sorted(set(axis.ticks))
    assert len(axis.ticks) <= 12
    assert all(-1e-6 <= axis.ratio(value) <= 1 + 1e-6 for value in values)


@given(
    st.lists(st.one_of(st.none(), st.integers(-(10**9), 10**9)), min_size=1, max_size=40).filter(
        any
    ),
    st.sampled_from(["bar", "line"]),
    st.text(max_size=80),
)
def test_every_shape_stays_inside_the_drawing(
    values: list[int | None], kind: str, title: str
) -> None:
    drawing = drawn(chart(kind, *values, title=title, y_label=title, x_label=title))

    for shape in drawing.shapes:
        if isinstance(shape, Rectangle):
            assert -0.01 <= shape.x
            assert shape.x + shape.width <= WIDTH + 0.01
            assert -0.01 <= shape.y
            assert shape.y + shape.height <= HEIGHT + 0.01
        elif isinstance(shape, Label):
            assert 0 <= shape.y <= HEIGHT + 0.01


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"labels": ["a", "b"]}, "1 values for 2 labels"),
        ({"labels": []}, "at least 1 item"),
        ({"series": []}, "at least 1 item"),
        ({"series": [{"values": [None]}]}, "nothing to draw"),
        ({"series": [{"values": [float("inf")]}]}, "finite number"),
        ({"kind": "pie"}, "'bar' or 'line'"),
    ],
)
def test_a_chart_that_cannot_be_drawn_is_refused(change: dict[str, object], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        chart("bar", 1, **change)
