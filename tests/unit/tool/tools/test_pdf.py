"""Tests that reports can be read: by people who copy from them, and by other programs."""

import io
from pathlib import Path

import pytest
from pydantic import ValidationError
from pypdf import PdfReader

from services.tool.chart_spec import ChartSpec, Series
from services.tool.fonts import BOLD, REGULAR
from services.tool.report_spec import ReportSpec, TableSpec
from services.tool.tools.pdf import TOOL
from tests.unit.tool.conftest import MakeContext

ENGLISH = ReportSpec(
    title="Which category grew most last quarter?",
    subtitle="orders.csv, Q3 2026",
    paragraphs=("Electronics grew most.", "Garden lost half."),
    table=TableSpec(
        columns=("Category", "Revenue", "Change"),
        rows=(("Electronics", 34860.4, "48.9 %"), ("Garden", 10016, "−51.6 %"), ("Toys", None, "")),
    ),
    chart=ChartSpec(
        kind="bar", title="Revenue", labels=("Electronics",), series=(Series(values=(34860.4,)),)
    ),
    notes=("Quarters are calendar quarters.",),
)
CHINESE = ReportSpec(
    title="哪个地区的退货率最高？",
    language="zh",
    paragraphs=("西部地区退货率最高，为 15.9%。",),
    table=TableSpec(columns=("地区", "退货率"), rows=(("西部", "15.9%"),)),
    notes=("只统计已送达的订单。",),
)


async def report(spec: ReportSpec, make_context: MakeContext) -> PdfReader:
    result = await TOOL.run(spec, make_context())
    (artifact,) = result.artifacts
    assert (artifact.name, artifact.media_type) == ("report.pdf", "application/pdf")
    reader = PdfReader(io.BytesIO(artifact.content))
    assert result.data == {"page_count": len(reader.pages)}
    return reader


async def test_all_parts_are_on_the_page(make_context: MakeContext) -> None:
    text = (await report(ENGLISH, make_context)).pages[0].extract_text()

    for part in (
        "Which category grew most last quarter?",
        "orders.csv, Q3 2026",
        "Electronics grew most.",
        "34,860.40",
        "10,016.00",
        "48.9 %",
        "–",
        "Quarters are calendar quarters.",
        "Page 1 of 1",
    ):
        assert part in text


async def test_chinese_text_can_be_copied_out_again(make_context: MakeContext) -> None:
    text = (await report(CHINESE, make_context)).pages[0].extract_text()

    for part in (CHINESE.title, "西部地区退货率最高", "15.9%", "说明", "第 1 页，共 1 页"):
        assert part in text


@pytest.mark.parametrize("spec", [ENGLISH, CHINESE])
async def test_every_font_is_embedded(make_context: MakeContext, spec: ReportSpec) -> None:
    reader = await report(spec, make_context)

    fonts = [
        font.get_object()
        for page in reader.pages
        for font in page["/Resources"]["/Font"].values()  # type: ignore[index]  # a mapping
    ]
    assert fonts
    for font in fonts:
        assert "SixhopSans" in font["/BaseFont"]
        assert "/FontFile2" in font["/FontDescriptor"]


async def test_a_long_table_repeats_its_heads_and_counts_its_pages(
    make_context: MakeContext,
) -> None:
    rows = tuple((f"row-{number}", number * 1000) for number in range(150))
    spec = ReportSpec(title="Long", table=TableSpec(columns=("Name", "Amount"), rows=rows))

    pages = [page.extract_text() for page in (await report(spec, make_context)).pages]

    assert len(pages) > 3
    assert all("Amount" in page for page in pages)
    assert all(f"Page {n} of {len(pages)}" in page for n, page in enumerate(pages, start=1))
    assert sum(page.count("row-") for page in pages) == 150


async def test_a_table_too_wide_for_the_page_turns_it(make_context: MakeContext) -> None:
    wide = TableSpec(columns=tuple(f"unbreakablename{n}" for n in range(15)), rows=())
    turned = ReportSpec(title="Wide", table=wide)

    box = (await report(turned, make_context)).pages[0].mediabox
    usual = (await report(ENGLISH, make_context)).pages[0].mediabox

    assert box.width > box.height
    assert usual.width < usual.height


async def test_the_same_report_is_the_same_file(make_context: MakeContext) -> None:
    first, second = [(await TOOL.run(ENGLISH, make_context())).artifacts for _ in range(2)]

    assert first == second


async def test_a_character_that_the_font_lacks_shows_as_a_box(make_context: MakeContext) -> None:
    text = (
        (await report(ReportSpec(title="Up 📈\x07 now", paragraphs=("a\x07\tb\nc",)), make_context))
        .pages[0]
        .extract_text()
    )

    assert "Up □ now" in text


async def test_a_title_alone_is_a_report(make_context: MakeContext) -> None:
    assert len((await report(ReportSpec(title="T"), make_context)).pages) == 1


async def test_a_paragraph_longer_than_a_page_goes_on_on_the_next(
    make_context: MakeContext,
) -> None:
    spec = ReportSpec(title="T", paragraphs=("word " * 3000 + "end.",))

    pages = [page.extract_text() for page in (await report(spec, make_context)).pages]

    assert sum(page.count("word") for page in pages) == 3000
    assert "end." in pages[-1]


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ({"columns": ["a", "b"], "rows": [[1]]}, "row 1 has 1 cells for 2 columns"),
        ({"columns": [], "rows": []}, "at least 1 item"),
        ({"columns": ["a"], "rows": [["x" * 501]]}, "more than 500 letters"),
        ({"columns": ["a"], "rows": [[float("nan")]]}, "finite number"),
    ],
)
def test_a_table_that_cannot_be_printed_is_refused(table: dict[str, object], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        ReportSpec.model_validate({"title": "T", "table": table})


@pytest.mark.parametrize("file", [REGULAR, BOLD])
def test_the_fonts_are_shipped_with_their_licence(file: Path) -> None:
    assert file.read_bytes()[:4] == b"\x00\x01\x00\x00"
    assert "SIL OPEN FONT LICENSE" in (file.parent / "OFL.txt").read_text(encoding="utf-8").upper()
