"""Tests the picture that the chart tool makes."""

import io

import pytest
from PIL import Image

from services.tool.chart_spec import ChartSpec, Series
from services.tool.tools.chart import TOOL
from tests.unit.tool.conftest import MakeContext

SPEC = ChartSpec(
    kind="bar",
    title="Revenue",
    labels=("Electronics", "Garden"),
    series=(Series(name="Q3", values=(34860.4, -10016)),),
)


def picture(content: bytes) -> Image.Image:
    return Image.open(io.BytesIO(content))


async def test_the_artefact_is_a_sharp_png(make_context: MakeContext) -> None:
    result = await TOOL.run(SPEC, make_context())

    (artifact,) = result.artifacts
    assert (artifact.name, artifact.media_type) == ("chart.png", "image/png")
    assert picture(artifact.content).size == (1280, 720)
    assert len(artifact.content) < 100_000
    assert result.data == {}


@pytest.mark.parametrize("title", ["各地区销售额", "销售", "Ünïcödé", "Ελληνικά"])
async def test_titles_are_drawn_in_every_script(make_context: MakeContext, title: str) -> None:
    named = SPEC.model_copy(update={"title": title})
    other = SPEC.model_copy(update={"title": "□" * len(title)})

    drawn, boxes = [
        (await TOOL.run(spec, make_context())).artifacts[0].content for spec in (named, other)
    ]

    assert drawn != boxes


async def test_the_same_chart_is_the_same_picture(make_context: MakeContext) -> None:
    first, second = [await TOOL.run(SPEC, make_context()) for _ in range(2)]

    assert first == second


async def test_line_ends_and_control_characters_in_any_text_are_no_trouble(
    make_context: MakeContext,
) -> None:
    rude = "two\nlines\x07\tand more"
    spec = ChartSpec(
        kind="line",
        title=rude,
        x_label=rude,
        y_label=rude,
        labels=(rude, rude),
        series=(Series(name=rude, values=(1, 2)), Series(name=rude, values=(2, 1))),
    )

    assert spec.title == "two lines and more"
    assert (await TOOL.run(spec, make_context())).artifacts
