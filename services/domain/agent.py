"""Defines what an agent file exports, and finds the agents."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from services.domain.ports import Artifact
from services.domain.run import Run
from services.runtime.errors import NotFoundError
from services.runtime.generation import Usage
from services.runtime.plugins import PluginError, discover

BUILT_IN_DIR = Path(__file__).parent / "agents"
BUILT_IN_PACKAGE = "services.domain.agents"
ENTRY_POINT_GROUP = "sixhop.agents"
TEMPLATE = "template"
"""Stands for the model's name where no model wrote the text."""
MIN_EXAMPLES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Ends a run; the text itself has been said before."""

    model: str = TEMPLATE
    """Who wrote the text: the model's name, or `template`."""
    usage: Usage = field(default_factory=Usage)
    """The tokens of all generations."""
    artifacts: tuple[Artifact, ...] = ()
    """The files that belong to the answer."""
    missing: tuple[str, ...] = ()
    """The parts that the answer should have had and has not."""
    sources: tuple[str, ...] = ()
    """Where the facts came from: documents, tables, queries."""
    finish_reason: str = "stop"
    """Why the text ends: `stop` at its end, `length` at its token limit, or `tool_calls` when the
    model waits for the results of the caller's tools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """Declares one agent; an agent file exports it as `AGENT`."""

    name: str
    """Unique; clients may ask for it."""
    description: str
    """What it does, in one sentence."""
    examples: tuple[str, ...]
    """Questions that belong to it, in every language that it answers; routing goes by them."""
    reads_data: bool = False
    """Whether it answers from data that comes with the question; others never get such a run."""
    needed_tools: tuple[str, ...] = ()
    """The tools that it cannot do without; routing says so when nobody can use one of them."""
    converses: bool = False
    """Whether it goes by the run's `history` and `options`, the caller's own tools among them;
    others never get a run that needs that."""
    run: Callable[[Run], Awaitable[Answer]]
    """Answers one question: says text, uses tools, returns what belongs to the answer."""


class AgentRegistry:
    """Knows every agent of this process by its name."""

    def __init__(self, agents: Sequence[Agent]) -> None:
        """Take the agents."""
        self._agents = {agent.name: agent for agent in agents}

    @classmethod
    def load(cls, extra_folders: Sequence[Path] = ()) -> "AgentRegistry":
        """Return the built-in agents and what the configuration and installed packages add.

        Raises:
            PluginError: a file does not declare an agent as it must, or a name is taken.
        """
        agents: dict[str, Agent] = {}
        found = discover(
            BUILT_IN_DIR,
            BUILT_IN_PACKAGE,
            extra_folders=extra_folders,
            group=ENTRY_POINT_GROUP,
            constant="AGENT",
        )
        for origin, exported in found:
            agent = _checked(origin, exported)
            if agent.name in agents:
                raise PluginError(origin, f"the name {agent.name!r} is taken; give it another")
            agents[agent.name] = agent
        return cls(list(agents.values()))

    def __iter__(self) -> Iterator[Agent]:
        """Iterate over the agents in the order of their names."""
        return iter(sorted(self._agents.values(), key=lambda agent: agent.name))

    def get(self, name: str) -> Agent:
        """Return one agent, or raise NotFoundError."""
        if name not in self._agents:
            raise NotFoundError("agent", name, list(self._agents))
        return self._agents[name]


def _checked(origin: str, exported: object) -> Agent:
    if not isinstance(exported, Agent):
        raise PluginError(
            origin, "AGENT is no Agent; write AGENT = Agent(name=, description=, examples=, run=)"
        )
    if len(exported.examples) < MIN_EXAMPLES:
        raise PluginError(
            origin, f"an agent needs at least {MIN_EXAMPLES} example questions, or nobody finds it"
        )
    return exported
