"""Holds the research agent to naming its sources, whatever the model does."""

from pydantic import JsonValue

from services.domain.agents.research import AGENT
from services.domain.delivery import Delivery
from services.domain.events import Restarted
from services.runtime.errors import DependencyFailedError, Origin
from tests.requirements import requirement
from tests.unit.domain.database import Database
from tests.unit.domain.running import Model, Tools, answered, degraded_of, text_of

QUESTION = "What is the return policy?"
RETURNS: dict[str, JsonValue] = {
    "title": "Returns",
    "source": "returns.md",
    "snippet": "30 days",
    "score": 2.0,
    "text": "Unused articles can be returned within 30 days. " * 30,
}


def found(database: Database) -> Tools:
    tools = Tools(database, "none")
    tools.results = [dict(RETURNS), {**RETURNS, "title": "Refunds", "source": "refunds.md"}]
    return tools


def failure() -> DependencyFailedError:
    return DependencyFailedError("model", "it stopped", cause="truncated", origin=Origin("model"))


async def test_answer_of_the_model_is_streamed_and_followed_by_the_sources(
    database: Database,
) -> None:
    model = Model("Within ", "30 days.")

    answer, events = await answered(AGENT, QUESTION, found(database), model=model)

    assert text_of(events) == (
        "Within 30 days.\n\nSources:\n- Returns (returns.md)\n- Refunds (refunds.md)"
    )
    assert (answer.model, answer.sources) == ("tiny", ("returns.md", "refunds.md"))


@requirement("conversing:length")
async def test_a_cut_answer_says_so(database: Database) -> None:
    model = Model("Within 30", finish_reason="length")

    answer, _ = await answered(AGENT, QUESTION, found(database), model=model)

    assert (answer.finish_reason, answer.missing) == ("length", ("the end of the answer",))


async def test_prompt_fits_a_small_model(database: Database) -> None:
    model = Model("ok")

    await answered(AGENT, QUESTION, found(database), model=model)

    assert sum(len(message.content) for message in model.asked[0]) < 1200


async def test_model_that_fails_in_the_middle_is_replaced_by_a_passage(database: Database) -> None:
    model = Model("Within ", failure=failure())

    answer, events = await answered(AGENT, QUESTION, found(database), model=model)

    assert any(isinstance(event, Restarted) for event in events)
    assert "Returns: Unused articles can be returned within 30 days." in text_of(events)
    assert "- Returns (returns.md)" in text_of(events)
    assert degraded_of(events) == [("extract", "answer")]
    assert answer.model == "template"


async def test_empty_answer_is_replaced_by_a_passage(database: Database) -> None:
    _, events = await answered(AGENT, QUESTION, found(database), model=Model(" \n"))

    assert degraded_of(events) == [("extract", "answer")]


async def test_no_time_for_a_model_means_a_passage(database: Database) -> None:
    model = Model("ok")

    _, events = await answered(AGENT, QUESTION, found(database), model=model, time_s=1.0)

    assert model.asked == []
    assert degraded_of(events) == [("extract", "answer")]


async def test_nothing_found_is_said(database: Database) -> None:
    _, events = await answered(AGENT, QUESTION, Tools(database, "none"))

    assert text_of(events).startswith("The documents say nothing about this.")


async def test_documents_that_cannot_be_searched_are_said_so(database: Database) -> None:
    tools, model = found(database), Model("I guess 30 days.")
    tools.failures = {"search": failure()}

    answer, events = await answered(AGENT, QUESTION, tools, model=model)

    assert text_of(events).startswith("The documents cannot be searched right now")
    assert degraded_of(events) == [("skip", "search")]
    assert (answer.missing, model.asked) == (("search",), [])


async def test_passages_of_an_earlier_search_are_marked(database: Database) -> None:
    tools = found(database)
    tools.ages_s = {"search": 300.0}

    _, events = await answered(AGENT, QUESTION, tools, model=Model("Within 30 days."))

    assert degraded_of(events) == [("cache", "search")]
    assert text_of(events).endswith(
        "This answer is not fresh: it uses earlier results, up to 5 min old."
    )


@requirement("failover:live")
async def test_live_text_is_said_once_it_was_checked(database: Database) -> None:
    good, right = await answered(
        AGENT,
        QUESTION,
        found(database),
        model=Model("Within ", "30 days."),
        delivery=Delivery.LIVE,
    )
    bad, wrong = await answered(
        AGENT, QUESTION, found(database), model=Model("Within ", "48 h."), delivery=Delivery.LIVE
    )

    assert (good.model, bad.model) == ("tiny", "template")
    assert text_of(right).startswith("Within 30 days.\n\nSources:")
    assert text_of(wrong).startswith("Returns: Unused articles")
    assert degraded_of(wrong) == [("extract", "answer")]
