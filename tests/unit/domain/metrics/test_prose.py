"""Holds the template's text to being a complete answer in both languages."""

import re

import pytest

from services.domain.metrics.prose import prose_of, title_of
from tests.unit.domain.database import Database


def test_english_growth_names_winner_numbers_periods_and_dates(tables: Database) -> None:
    prose = prose_of(tables.ask("shop", "Which category grew most last quarter?"))

    assert prose.headline == (
        "Toys grew most: its revenue rose by 1,733.50 (+242.8%) to 2,447.50 in Q3 2026 "
        "(2026-07-01 to 2026-09-30), from 714 in Q2 2026 (2026-04-01 to 2026-06-30)."
    )
    assert prose.support[0] == "Next came Garden (+524.30, +40.6%) and Kitchen (+100.50, +5.5%)."


def test_chinese_growth_names_winner_numbers_units_periods_and_dates(tables: Database) -> None:
    prose = prose_of(tables.ask("xiaoshou", "上个季度哪个品类增长最多？"))

    assert prose.headline == (
        "2026年第三季度（2026-07-01至2026-09-30），数码增长最多：销售额为24,402元，"
        "2026年第二季度（2026-04-01至2026-06-30）为10,374元，增加了14,028元（+135.2%）。"
    )
    assert "按百分比，食品变化最大：+375.8%。" in prose.support


def test_growth_states_both_measures_when_they_differ(tables: Database) -> None:
    prose = prose_of(tables.ask("xiaoshou", "Which category grew fastest last quarter?"))

    assert prose.headline.startswith("食品 grew fastest")
    assert "In absolute terms, 数码 changed most: +14,028元, +135.2%." in prose.support


def test_trend_leaves_the_cut_month_out_of_its_headline(tables: Database) -> None:
    prose = prose_of(tables.ask("shop", "Show revenue by month since March 2026"))

    assert "in March 2026 to 2,372.70 in September 2026" in prose.headline
    assert "Not complete: October 2026 (1,148.95)." in prose.support


def test_note_says_how_last_quarter_was_read(tables: Database) -> None:
    facts = tables.ask("odd", "Which category grew most last quarter?")

    assert facts.query.notes[0] == (
        "“last quarter” is the last complete calendar quarter in the data: Q2 2026 "
        "(2026-04-01 to 2026-06-30); the data ends on 2026-08-14."
    )


@pytest.mark.parametrize(
    "question",
    [
        "Which category grew most last quarter?", "revenue by region", "total revenue",
        "revenue by month", "North vs South revenue", "share of Toys in revenue",
        "return rate by category", "Which weekday has the most orders?", "top 3 products",
        "各地区的销售额", "每月销售额", "哪个品类的退货率最高", "华北和华南对比",
    ],
)  # fmt: skip
@pytest.mark.parametrize("language", ["en", "zh"])
def test_text_is_in_one_language_and_ends_its_sentences(
    tables: Database, question: str, language: str
) -> None:
    table = "xiaoshou" if re.search("[\u4e00-\u9fff]", question) else "shop"
    facts = tables.ask(table, question, language)

    text = prose_of(facts).text

    assert text.endswith("。" if language == "zh" else ".")
    assert "None" not in text + title_of(facts)
    if table == "shop" and language == "en":
        assert not re.search("[\u4e00-\u9fff]", text)
