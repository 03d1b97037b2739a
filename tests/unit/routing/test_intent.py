"""Holds the choice of an agent to a clear lead, and to the fallback without one."""

import numpy as np
import pytest

from services.routing.intent import NEAREST_EXAMPLES, AgentCard, IntentIndex, Vector
from services.runtime.errors import (
    InvalidArgumentError,
    PermissionDeniedError,
    SelfUnavailableError,
)
from tests.requirements import requirement


class Angles:
    """Embeds a text that is a number of degrees."""

    def __init__(self) -> None:
        self.embedded: list[str] = []

    def embed(self, text: str) -> Vector:
        """Return the unit vector at the angle."""
        self.embedded.append(text)
        angle = np.radians(float(text))
        return np.asarray([np.cos(angle), np.sin(angle)], dtype=np.float32)


def card(name: str, *degrees: float) -> AgentCard:
    """Return an agent with examples at these angles."""
    return AgentCard(name, f"Does {name}.", tuple(str(angle) for angle in degrees))


def chosen(index: IntentIndex, question: str, min_margin: float = 0.1) -> tuple[str, str]:
    """Return who answers, and why."""
    choice = index.choose(question, min_margin=min_margin, fallback_agent="chat")
    return choice.agent, choice.reason


INDEX = IntentIndex(
    [card("orders", 0, 5), card("reports", 90, 85), card("chat", 180, 175)], Angles()
)


@pytest.mark.parametrize(
    ("question", "agent", "reason"),
    [
        ("2", "orders", "nearest"),
        ("88", "reports", "nearest"),
        ("178", "chat", "nearest"),
        ("45", "chat", "uncertain"),
        ("270", "chat", "uncertain"),
    ],
)
def test_the_nearest_agent_answers_when_it_leads_clearly(
    question: str, agent: str, reason: str
) -> None:
    assert chosen(INDEX, question) == (agent, reason)


def test_the_lead_is_told() -> None:
    choice = INDEX.choose("0", min_margin=0.1, fallback_agent="chat")

    mean_orders = (1 + np.cos(np.radians(5))) / 2
    mean_reports = np.cos(np.radians(85)) / 2
    assert choice.score == pytest.approx(mean_orders, abs=1e-5)
    assert choice.margin == pytest.approx(mean_orders - mean_reports, abs=1e-5)


def test_a_lead_of_exactly_the_margin_is_enough() -> None:
    margin = INDEX.choose("30", min_margin=0, fallback_agent="chat").margin

    assert chosen(INDEX, "30", margin) == ("orders", "nearest")
    assert chosen(INDEX, "30", margin + 1e-6) == ("chat", "uncertain")


def test_one_lucky_example_does_not_decide() -> None:
    lucky = card("orders", 0, 90, 91, 92)
    steady = card("reports", 8, 9, 10)
    index = IntentIndex([lucky, steady], Angles())

    assert NEAREST_EXAMPLES == 3
    assert index.choose("0", min_margin=0, fallback_agent="chat").agent == "reports"


def test_without_the_fallback_agent_the_nearest_answers() -> None:
    index = IntentIndex([card("orders", 0), card("reports", 90)], Angles())

    assert index.choose("45", min_margin=0.5, fallback_agent="chat").reason == "nearest"


def test_a_single_agent_leads_by_all() -> None:
    index = IntentIndex([card("orders", 0)], Angles())

    choice = index.choose("170", min_margin=0.5, fallback_agent="chat")

    assert (choice.agent, choice.margin) == ("orders", 1.0)


def test_an_agent_without_examples_is_known_and_never_nearest() -> None:
    index = IntentIndex([card("orders", 0), AgentCard("quiet", "Says nothing.", ())], Angles())

    assert index.names == ["orders", "quiet"]
    assert index.choose("0", min_margin=0, fallback_agent="chat").agent == "orders"


@pytest.mark.parametrize("cards", [[], [AgentCard("quiet", "Says nothing.", ())]])
def test_without_any_example_nobody_can_be_chosen(cards: list[AgentCard]) -> None:
    index = IntentIndex(cards, Angles())

    with pytest.raises(SelfUnavailableError, match="knows no agent"):
        index.choose("0", min_margin=0, fallback_agent="chat")


def test_the_fallback_agent_answers_when_nobody_has_examples() -> None:
    index = IntentIndex([AgentCard("chat", "Talks.", ())], Angles())

    assert chosen(index, "0") == ("chat", "uncertain")


def test_examples_are_embedded_once() -> None:
    embedder = Angles()
    index = IntentIndex([card("orders", 0, 1)], embedder)

    for _ in range(3):
        chosen(index, "7")

    assert embedder.embedded == ["0", "1", "7", "7", "7"]


def reading(name: str, *degrees: float) -> AgentCard:
    """Return an agent that answers from data which comes with the question."""
    return AgentCard(name, "Reads.", tuple(str(angle) for angle in degrees), reads_data=True)


@pytest.mark.parametrize(
    ("question", "agent", "reason"),
    [
        ("2", "orders", "nearest"),
        ("178", "reports", "nearest"),
        ("46", "reports", "uncertain"),
    ],
)
def test_a_question_with_data_goes_only_to_those_who_read_data(
    question: str, agent: str, reason: str
) -> None:
    index = IntentIndex(
        [reading("orders", 0, 5), reading("reports", 90, 85), card("chat", 180, 175)], Angles()
    )

    choice = index.choose(question, min_margin=0.1, fallback_agent="reports", with_data=True)

    assert (choice.agent, choice.reason) == (agent, reason)


def test_without_a_reader_of_data_the_usual_agents_answer() -> None:
    choice = INDEX.choose("178", min_margin=0.1, fallback_agent="chat", with_data=True)

    assert choice.agent == "chat"


def talker(name: str, *, reads_data: bool = False) -> AgentCard:
    """Return an agent that converses."""
    return AgentCard(name, "Talks.", (), reads_data, (), True)


@requirement("conversing:agent")
@pytest.mark.parametrize(
    ("cards", "with_data", "agent"),
    [
        ([card("orders", 0), talker("chat"), talker("bard")], False, "chat"),
        ([card("chat", 0), talker("poet"), talker("bard")], False, "bard"),
        ([talker("chat"), talker("reader", reads_data=True)], True, "reader"),
    ],
)
def test_who_converses_is_chosen_without_weighing_words(
    cards: list[AgentCard], with_data: bool, agent: str
) -> None:
    embedder = Angles()
    index = IntentIndex(cards, embedder)
    embedder.embedded.clear()

    choice = index.conversing("chat", with_data=with_data)

    assert (choice.agent, choice.reason) == (agent, "conversation")
    assert embedder.embedded == []


@requirement("conversing:agent")
@pytest.mark.parametrize("with_data", [False, True])
def test_where_nobody_converses_that_is_said(with_data: bool) -> None:
    cards = [card("orders", 0), *([talker("chat")] if with_data else [])]

    with pytest.raises(InvalidArgumentError, match="leave them out"):
        IntentIndex(cards, Angles()).conversing("chat", with_data=with_data)


@requirement("tenants:agents-and-tools")
def test_only_allowed_agents_are_chosen_whoever_would_be_nearer() -> None:
    narrowed = INDEX.only(["orders", "reports", "unknown"])

    assert chosen(narrowed, "178") == ("reports", "nearest")
    assert narrowed.names == ["orders", "reports"]
    assert chosen(INDEX, "178") == ("chat", "nearest")


@requirement("tenants:agents-and-tools")
def test_where_nobody_is_allowed_the_refusal_names_who_is_there() -> None:
    with pytest.raises(PermissionDeniedError, match=r"allowed: none; there are orders, reports"):
        INDEX.only([])
