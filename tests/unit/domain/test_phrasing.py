"""Holds models to whole answers and to the numbers of their sources."""

import pytest

from services.domain.agents.chat import AGENT as CHAT
from services.domain.agents.research import AGENT as RESEARCH
from services.domain.events import Restarted
from services.domain.phrasing import foreign_number, phrasing_of
from services.domain.ports import ToolResult
from services.runtime.output_limit import LimitedBy, OutputLimit
from tests.unit.domain.database import Database
from tests.unit.domain.running import Model, Tools, answered, degraded_of, reasons_of, text_of


@pytest.mark.parametrize(
    ("text", "source", "expected"),
    [
        ("Within 30 days.", "Return it within 30 days.", ""),
        ("Within 48 hours.", "Return it within 30 days.", "48"),
        ("It costs 1,250.50 in all.", "The price is 1250.50.", ""),
        ("It costs 1,250.50 in all.", "The price is 1,250.", "1,250.50"),
        ("两年。", "保修两年。", ""),
        ("保修3年。", "保修2年。", "3"),
    ],
)
def test_a_number_that_no_source_has_is_found(text: str, source: str, expected: str) -> None:
    assert foreign_number(text, [source]) == expected


def test_a_text_that_ends_at_its_limit_is_known_as_cut() -> None:
    result = ToolResult({"text": " It grew ", "finish_reason": "length", "input_tokens": 7.0})

    phrasing = phrasing_of(result)

    assert phrasing is not None
    assert (phrasing.text, phrasing.cut) == ("It grew", True)
    assert phrasing.usage.input_token_count == 7


async def test_an_answer_with_invented_numbers_gives_way_to_the_documents(
    database: Database,
) -> None:
    tools = Tools(database, "none")
    tools.results = [{"title": "Returns", "source": "returns.md", "text": "Within 30 days."}]

    answer, events = await answered(
        RESEARCH, "How long may I return it?", tools, model=Model("Within ", "48 hours.")
    )

    assert any(isinstance(event, Restarted) for event in events)
    assert degraded_of(events) == [("extract", "answer")]
    assert "Returns: Within 30 days." in text_of(events)
    assert answer.model == "template"


async def test_a_talk_that_is_cut_off_says_so(database: Database) -> None:
    limit = OutputLimit(256, LimitedBy.CALLER)
    model = Model("Once upon a ", finish_reason="length", limit=limit)

    answer, events = await answered(CHAT, "Tell a story", Tools(database, "none"), model=model)

    assert text_of(events) == "Once upon a  …"
    assert degraded_of(events) == [("partial", "answer")]
    assert answer.missing == ("the end of the answer",)
    assert reasons_of(events) == [
        "tiny was cut off at the limit of 256 tokens that this agent sets"
    ]
