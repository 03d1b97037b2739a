"""Holds the reading of Chinese to the values of the data, classifiers or not."""

import pytest

from tests.unit.domain.database import Database


@pytest.fixture
def shop(database: Database) -> Database:
    database.execute(
        "CREATE TABLE shop AS SELECT * FROM (VALUES "
        "(11, DATE '2026-07-01', '台灯', 7, 50.0), (12, DATE '2026-08-02', '沙发', 2, 900.0), "
        "(13, DATE '2026-09-05', '台灯', 1, 30.0)) AS v(订单号, 日期, 产品, 数量, 销售额)"
    )
    return database


@pytest.mark.parametrize("question", ["卖了多少台灯？", "多少台灯", "一共卖出多少台灯？"])
def test_value_that_begins_with_a_classifier_is_the_value(shop: Database, question: str) -> None:
    assert shop.ask("shop", question).headline.value == 8.0


def test_classifier_before_a_value_stays_a_classifier(shop: Database) -> None:
    assert shop.ask("shop", "卖了多少台沙发？").headline.value == 2.0
    assert shop.ask("shop", "卖了多少台台灯？").headline.value == 8.0


def test_single_character_that_is_left_over_is_said(shop: Database) -> None:
    query = shop.plan("shop", "卖了多少台锅？")

    assert any("“锅”" in note for note in query.notes)
