"""Holds the check of a model's prose to letting nothing false through."""

import pytest

from services.domain.metrics.prose import brief_of, prose_of
from services.domain.metrics.prose_check import check_prose
from tests.unit.domain.database import Database

GROWTH = "Which category grew most last quarter?"
"""Toys grew by 1,733.50 (+242.8%) to 2,447.50 from 714; Garden by 524.30 (+40.6%); Office fell."""


@pytest.mark.parametrize(
    "text",
    [
        "Toys grew most, to 2,447.50 in Q3 2026 from 714 in Q2 2026.",
        "Toys grew the most: revenue rose by 1,733.50 (242.8%) in the third quarter of 2026.",
        "In Q3 2026, Toys led with growth of 243%, reaching 2,448.",
        "Toys rose 1.7k to 2,447.5. Garden came next and grew by 40.6%.",
        "Toys grew most, by $1,733.50. Overall revenue rose by 2,107.70 (30.1%) to 9,115.75.",
    ],
)
def test_true_prose_is_accepted(tables: Database, text: str) -> None:
    assert check_prose(text, tables.ask("shop", GROWTH)).reason == ""


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Garden grew by 524.30 to 1,817.20 in Q3 2026.", "does not name Toys"),
        ("Toys grew most, to 2,999.00 in Q3 2026.", "2,999.00"),
        ("Toys grew by 40.6% and reached 2,447.50.", "40.6%"),
        ("Toys reached 1,817.20 and Garden reached 2,447.50.", "for Garden"),
        ("Toys fell most, to 2,447.50 in Q3 2026.", "direction"),
        ("Garden grew most, by 524.30. Toys reached 2,447.50.", "ranks Garden"),
        ("Toys had the lowest growth: 1,733.50.", "ranks Toys"),
        ("Toys grew to 2,447.50. Office grew by 110.60.", "direction of Office"),
        ("Toys more than doubled its revenue to 2,447.50.", "doubled"),
        ("Toys grew very nicely in the last quarter indeed.", "no number"),
        ("Toys grew by 2447%, from 714 to 2,447.50.", "2447%"),
        ("Toys 😀 grew to 2,447.50 in Q3 2026.", "plain prose"),
        ("Toys.", "too short"),
        ("I am happy to help! Toys grew to 2,447.50.", "plain prose"),
        ("Toys grew to 2,447.50 in 7 stores.", "7"),
    ],
)
def test_false_prose_is_rejected_with_the_reason(tables: Database, text: str, problem: str) -> None:
    verdict = check_prose(text, tables.ask("shop", GROWTH))

    assert not verdict.accepted
    assert problem in verdict.reason


def test_direction_without_a_comparison_is_rejected(tables: Database) -> None:
    facts = tables.ask("shop", "Which category had the highest revenue in Q3 2026?")

    verdict = check_prose(f"{facts.headline.name} rose to {facts.headline.value:,.2f}.", facts)

    assert "nothing was compared" in verdict.reason


def test_ratio_may_be_printed_as_percent(tables: Database) -> None:
    facts = tables.ask("shop", "Which category has the highest return rate?")

    assert check_prose("Kitchen has the highest return rate, 38.5%.", facts).accepted
    assert not check_prose("Kitchen has the highest return rate, 35.8%.", facts).accepted


def test_chinese_prose_is_held_to_the_same(tables: Database) -> None:
    facts = tables.ask("xiaoshou", "上个季度哪个品类增长最多？")

    assert check_prose(
        "2026年第三季度数码增长最多，销售额增加14,028元，达到24,402元。", facts
    ).accepted
    wrong = check_prose("2026年第三季度数码下降最多，销售额为24,402元。", facts)
    assert (wrong.accepted, wrong.reason) == (False, "数码的变化方向不对")
    assert not check_prose("2026年第三季度家电增长最多，数码为24,402元。", facts).accepted
    assert not check_prose("Digital goods 数码 grew to 24,402 in Q3 2026.", facts).accepted


@pytest.mark.parametrize(
    ("table", "question"),
    [
        ("shop", GROWTH),
        ("shop", "Which category fell the most last quarter?"),
        ("shop", "Which product had the highest revenue?"),
        ("shop", "What was the total revenue in Q3 2026?"),
        ("shop", "What share of revenue came from Toys last quarter?"),
        ("odd", "Which region has the lowest return rate?"),
        ("xiaoshou", "上个季度哪个品类增长最多？"),
        ("xiaoshou", "2026年第三季度的总销售额是多少？"),
    ],
)
def test_headline_of_the_template_passes_its_own_check(
    tables: Database, table: str, question: str
) -> None:
    facts = tables.ask(table, question)

    assert check_prose(prose_of(facts).headline, facts).reason == ""


def test_brief_for_the_model_is_short(tables: Database) -> None:
    brief = brief_of(tables.ask("shop", GROWTH))

    # About four characters make a token of English.
    assert len(brief) <= 480
