"""Holds the example sentences of the agents to being many, bilingual and apart."""

import pytest

from services.domain.agent import Agent
from services.domain.agents import chat, orders, reports, research

AGENTS = [chat.AGENT, orders.AGENT, reports.AGENT, research.AGENT]


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_agent_has_six_examples_in_each_language(agent: Agent) -> None:
    chinese = [text for text in agent.examples if any("\u4e00" <= c <= "\u9fff" for c in text)]

    assert len(chinese) >= 6
    assert len(agent.examples) - len(chinese) >= 6


def test_no_example_belongs_to_two_agents() -> None:
    examples = [example for agent in AGENTS for example in agent.examples]

    assert len(set(examples)) == len(examples)
