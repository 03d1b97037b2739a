"""Holds the reports agent to answering in every case, and to numbers from the data only."""

import pytest

from services.domain.agents.reports import AGENT
from services.domain.events import Degraded
from services.domain.metrics.errors import NotUnderstoodError, ReadOnlyError
from services.domain.ports import ToolResult
from services.runtime.errors import DependencyFailedError, Origin
from tests.requirements import requirement
from tests.unit.domain.database import Database
from tests.unit.domain.running import Tools, answered, degraded_of, skipped_of, text_of

QUESTION = "Which category grew most last quarter?"
HEADLINE = "Toys grew most: its revenue rose by 1,733.50 (+242.8%) to 2,447.50 in Q3 2026"


def failure() -> DependencyFailedError:
    return DependencyFailedError(
        "model", "the model did not answer", cause="timeout", origin=Origin("model")
    )


async def test_answer_has_prose_notes_chart_and_pdf(tables: Database) -> None:
    tools = Tools(tables, "shop")
    tools.prose = ToolResult({"text": "Toys grew most, to 2,447.50 in Q3 2026.", "model": "tiny"})

    answer, events = await answered(AGENT, QUESTION, tools)

    assert tools.names == ["profile", "sql", "chart", "summarise", "pdf"]
    assert text_of(events).startswith("Toys grew most, to 2,447.50 in Q3 2026.\n\nNotes:\n- ")
    assert answer.model == "tiny"
    assert [artifact.name for artifact in answer.artifacts] == ["chart.bin", "pdf.bin"]
    assert (answer.missing, degraded_of(events)) == ((), [])


async def test_prose_that_contradicts_the_facts_is_replaced_by_the_template(
    tables: Database,
) -> None:
    tools = Tools(tables, "shop")
    tools.prose = ToolResult({"text": "Garden grew most, to 9,999 in Q3 2026.", "model": "tiny"})

    answer, events = await answered(AGENT, QUESTION, tools)

    assert text_of(events).startswith(HEADLINE)
    assert degraded_of(events) == [("template", "prose")]
    assert answer.model == "template"
    assert "Garden" not in text_of(events).split(".")[0]


async def test_model_that_fails_costs_the_prose_only(tables: Database) -> None:
    tools = Tools(tables, "shop")
    tools.failures["summarise"] = failure()

    answer, events = await answered(AGENT, QUESTION, tools)

    assert text_of(events).startswith(HEADLINE)
    assert degraded_of(events) == [("template", "prose")]
    assert len(answer.artifacts) == 2


async def test_chart_and_pdf_that_fail_are_named_as_missing(tables: Database) -> None:
    tools = Tools(tables, "shop")
    tools.failures = {"chart": failure(), "pdf": failure()}

    answer, events = await answered(AGENT, QUESTION, tools)

    assert text_of(events).startswith(HEADLINE)
    assert answer.missing == ("chart", "pdf")


@pytest.mark.parametrize(
    ("time_s", "skipped"),
    [
        (30.0, []),
        (2.0, ["summarise"]),
        (0.8, ["summarise", "pdf"]),
        (0.2, ["chart", "summarise", "pdf"]),
    ],
)
async def test_optional_steps_that_do_not_fit_are_skipped_prose_first(
    tables: Database, time_s: float, skipped: list[str]
) -> None:
    tools = Tools(tables, "shop")

    answer, events = await answered(AGENT, QUESTION, tools, time_s=time_s)

    assert skipped_of(events) == skipped
    assert text_of(events).startswith(HEADLINE)
    assert answer.missing == tuple(name for name in skipped if name != "summarise")


async def test_a_report_without_its_pdf_is_said_so_before_anything_is_waited_for(
    tables: Database,
) -> None:
    tools = Tools(tables, "shop")
    tools.out = {"pdf"}

    answer, events = await answered(AGENT, QUESTION, tools)

    assert skipped_of(events[:2]) == ["pdf"]
    assert degraded_of(events[:3]) == [("skip", "pdf")]
    assert tools.names == ["profile", "sql", "chart", "summarise"]
    assert answer.missing == ("pdf",)
    assert text_of(events).startswith(HEADLINE)


@pytest.mark.parametrize(
    ("question", "language", "told"),
    [
        (QUESTION, "en", "- This answer is not fresh: it uses earlier results, up to 42 s old."),
        (
            "上个季度哪个品类增长最多？",
            "zh",
            "- 此答案并非最新：它使用了之前的结果，最早的为42",
        ),
        ("SELECT COUNT(*) AS n FROM shop", "en", "earlier results, up to 42 s old."),
    ],
)
async def test_numbers_of_an_earlier_query_are_marked_in_the_text_and_in_the_pdf(
    tables: Database, question: str, language: str, told: str
) -> None:
    tools = Tools(tables, "shop")
    tools.ages_s = {"sql": 42.0}

    _, events = await answered(AGENT, question, tools, language=language)

    assert ("cache", "numbers") in degraded_of(events)
    assert told in text_of(events)
    if "pdf" in tools.names:
        assert told[2:] in str(tools.arguments("pdf")["notes"])


async def test_question_and_answer_are_chinese_over_english_data(tables: Database) -> None:
    tools = Tools(tables, "shop")

    _, events = await answered(AGENT, "上个季度哪个品类增长最多？", tools, language="zh")

    assert text_of(events).startswith("2026年第三季度（2026-07-01至2026-09-30），Toys增长最多")
    assert "说明：" in text_of(events)


@pytest.mark.parametrize("question", ["drop table shop", "delete all rows", "删除所有订单"])
async def test_wish_to_change_data_touches_no_tool(tables: Database, question: str) -> None:
    tools = Tools(tables, "shop")

    with pytest.raises(ReadOnlyError):
        await answered(AGENT, question, tools)

    assert tools.calls == []


async def test_question_past_the_data_is_an_error_that_helps(tables: Database) -> None:
    with pytest.raises(NotUnderstoodError, match="the columns are: order_id"):
        await answered(AGENT, "Which planet is the largest?", Tools(tables, "shop"))


async def test_select_of_the_user_is_passed_on_and_listed(tables: Database) -> None:
    tools = Tools(tables, "shop")

    _, events = await answered(AGENT, "SELECT COUNT(*) AS n FROM shop", tools)

    assert tools.arguments("sql")["query"] == "SELECT COUNT(*) AS n FROM shop"
    assert "| n |\n| --- |\n| 336 |" in text_of(events)


async def test_data_that_cannot_be_read_is_the_error(tables: Database) -> None:
    tools = Tools(tables, "shop")
    tools.failures["profile"] = failure()

    with pytest.raises(DependencyFailedError):
        await answered(AGENT, QUESTION, tools)


async def test_period_without_rows_is_an_answer_without_pictures(tables: Database) -> None:
    tools = Tools(tables, "shop")

    _, events = await answered(AGENT, "total revenue in 2019", tools)

    assert text_of(events).startswith("There are no rows in 2019")
    assert "chart" not in tools.names


async def test_prompt_for_the_model_is_short(tables: Database) -> None:
    tools = Tools(tables, "shop")

    await answered(AGENT, QUESTION, tools)

    assert len(str(tools.arguments("summarise")["text"])) <= 480


@requirement("failover:six-hops")
async def test_prose_of_the_model_that_stands_in_says_so(tables: Database) -> None:
    tools = Tools(tables, "shop")
    tools.prose = ToolResult(
        {
            "text": "Toys grew most, to 2,447.50 in Q3 2026.",
            "model": "small",
            "backup": {"problem": "model is sick", "error_reason": "CIRCUIT_OPEN"},
        }
    )

    answer, events = await answered(AGENT, "Which category grew most last quarter?", tools)

    assert answer.model == "small"
    assert degraded_of(events) == [("backup", "prose")]
    (degraded,) = [event for event in events if isinstance(event, Degraded)]
    assert (degraded.error_reason, degraded.reason) == (
        "CIRCUIT_OPEN",
        "small answers: model is sick",
    )
