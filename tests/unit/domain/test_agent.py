"""Holds agent files to declaring what others need to find and run them."""

from pathlib import Path

import pytest

from services.domain.agent import TEMPLATE, Agent, AgentRegistry, Answer
from services.domain.run import Run
from services.runtime.errors import NotFoundError
from services.runtime.plugins import PluginError

GOOD = """
from services.domain.agent import Agent, Answer

async def run(run):
    return Answer()

AGENT = Agent(name={name!r}, description="Talks.", examples={examples!r}, run=run)
"""


async def nothing(run: Run) -> Answer:
    """Answer nothing."""
    return Answer()


def agent(name: str) -> Agent:
    """Return an agent."""
    return Agent(name=name, description="Talks.", examples=("a", "b"), run=nothing)


def write(folder: Path, name: str, examples: tuple[str, ...] = ("a", "b")) -> Path:
    """Put an agent's file into a folder."""
    folder.mkdir(exist_ok=True)
    file = folder / f"{name}.py"
    file.write_text(GOOD.format(name=name, examples=examples), encoding="utf-8")
    return file


def test_agents_are_listed_by_name_and_found_by_name() -> None:
    registry = AgentRegistry([agent("reports"), agent("chat")])

    assert [one.name for one in registry] == ["chat", "reports"]
    assert registry.get("chat").name == "chat"


def test_an_unknown_agent_is_not_found_and_the_known_ones_are_named() -> None:
    registry = AgentRegistry([agent("reports"), agent("chat")])

    with pytest.raises(NotFoundError, match="known: chat, reports"):
        registry.get("chta")


def test_a_file_in_a_named_folder_is_an_agent_beside_the_shipped_ones(tmp_path: Path) -> None:
    write(tmp_path, "weather")

    names = [one.name for one in AgentRegistry.load([tmp_path])]

    assert "weather" in names
    assert len(names) > 1


def test_a_name_that_is_taken_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "one", "weather")
    second = write(tmp_path / "two", "weather")

    with pytest.raises(PluginError, match="the name 'weather' is taken") as caught:
        AgentRegistry.load([tmp_path / "one", tmp_path / "two"])

    assert caught.value.origin == str(second)


def test_an_agent_that_nobody_would_find_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "weather", ("only one",))

    with pytest.raises(PluginError, match="at least 2 example questions"):
        AgentRegistry.load([tmp_path])


def test_a_file_that_exports_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "weather.py").write_text("AGENT = 'me'\n", encoding="utf-8")

    with pytest.raises(PluginError, match="AGENT is no Agent"):
        AgentRegistry.load([tmp_path])


def test_an_answer_says_that_no_model_wrote_it_until_one_did() -> None:
    answer = Answer()

    assert answer.model == TEMPLATE
    assert (answer.artifacts, answer.missing, answer.sources) == ((), (), ())
