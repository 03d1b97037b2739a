"""Tests that documents are found in both languages."""

from pathlib import Path

import pytest

from services.runtime.errors import SelfUnavailableError
from services.tool.config import ToolSettings
from services.tool.tools.search import TOOL, SearchArguments
from tests.unit.tool.conftest import MakeContext


@pytest.mark.parametrize(
    ("question", "source", "words"),
    [
        ("How long do I have to return an article?", "returns.md", "30 days"),
        ("退货政策是什么？", "returns-zh.md", "30 天"),
        ("What does shipping to the West cost?", "shipping.md", "West"),
        ("可以用微信付款吗", "shipping-zh.md", "微信支付"),
        ("Can I pay with Alipay?", "payment.md", "Alipay"),
        ("保修多久", "warranty-zh.md", "2 年"),
        ("Which size of hiking boots should I order?", "sizes.md", "one size above"),
        ("why are parcels to the West damaged", "west-region.md", "double-walled"),
    ],
)
async def test_the_shops_documents_answer_the_shops_questions(
    make_context: MakeContext, question: str, source: str, words: str
) -> None:
    result = await TOOL.run(SearchArguments(query=question), make_context())

    results = result.data["results"]
    assert isinstance(results, list)
    assert any(
        isinstance(hit, dict) and hit["source"] == source and words in str(hit["text"])
        for hit in results
    )


async def test_a_question_about_nothing_finds_nothing(make_context: MakeContext) -> None:
    result = await TOOL.run(SearchArguments(query="xylophone"), make_context())

    assert result.data == {"results": []}


async def test_a_changed_folder_is_read_anew(make_context: MakeContext, tmp_path: Path) -> None:
    context = make_context(settings=ToolSettings(documents_dir=tmp_path))
    (tmp_path / "a.txt").write_text("The blue lamp is sold out.", encoding="utf-8")
    first = await TOOL.run(SearchArguments(query="lamp"), context)
    (tmp_path / "b.txt").write_text("The green lamp is in stock.", encoding="utf-8")

    second = await TOOL.run(SearchArguments(query="lamp"), context)

    assert len(first.data["results"]) == 1  # type: ignore[arg-type]  # a list
    assert len(second.data["results"]) == 2  # type: ignore[arg-type]  # a list


async def test_a_missing_folder_says_which_setting_to_correct(
    make_context: MakeContext, tmp_path: Path
) -> None:
    context = make_context(settings=ToolSettings(documents_dir=tmp_path / "nowhere"))

    with pytest.raises(SelfUnavailableError, match="correct documents_dir"):
        await TOOL.run(SearchArguments(query="lamp"), context)
