"""Holds additions to one file each: found without a line elsewhere, and usable."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from pydantic import JsonValue

from services.domain.agent import AgentRegistry
from services.domain.events import TextDelta
from services.domain.ports import ToolResult as AgentToolResult
from services.domain.run import Ports, Run
from services.domain.sources import DataSource
from services.model.catalog import find_backend
from services.runtime.call import Inbound
from services.runtime.clock import ManualClock
from services.runtime.conversation import Message
from services.runtime.failover_stream import ANY_TERMS, Terms
from services.runtime.generation import Generation, TextStream, Wait
from services.runtime.generation_options import NO_OPTIONS, GenerationOptions
from services.tool.config import ToolSettings
from services.tool.context import ToolResources
from services.tool.execution import execute
from services.tool.registry import Registry
from tests.architecture.sources import ROOT
from tests.requirements import requirement
from tests.stacks import Unwatched

NEW_TOOL = '''
"""Doubles a number."""

from pydantic import BaseModel, ConfigDict

from services.tool.registry import Fallback, Tool, ToolContext, ToolResult


class Arguments(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    number: int


async def run(arguments: Arguments, context: ToolContext) -> ToolResult:
    return ToolResult(data={"doubled": 2 * arguments.number})


TOOL = Tool(
    name="double",
    description="Doubles a number.",
    arguments=Arguments,
    run=run,
    timeout_s=1.0,
    max_concurrency=4,
    fallback=Fallback.NONE,
    idempotent=True,
)
'''

NEW_AGENT = '''
"""Doubles what it is asked about."""

from services.domain.agent import Agent, Answer
from services.domain.run import Run


async def run(run: Run) -> Answer:
    result = await run.tool("double", {"number": int(run.question)}, title="Doubling")
    run.say(str(result.data["doubled"]))
    return Answer(sources=("arithmetic",))


AGENT = Agent(
    name="doubler",
    description="Doubles a number.",
    examples=("Double 4", "What is twice 7?"),
    run=run,
)
'''

NEW_BACKEND = '''
"""Reaches nobody."""

from contextlib import nullcontext

from services.model.backend import Backend, Capabilities

BACKEND = Backend(
    name="nobody", capabilities=Capabilities(), connect=lambda provider, pool, clock: nullcontext()
)
'''


class NoModel:
    """Stands where the model hop would, for what does not call it."""

    async def generate(
        self, messages: Sequence[Message], *, max_output_tokens: int = 0
    ) -> Generation:
        """Refuse, as a tool's port."""
        raise AssertionError("nobody here has need of a model")

    def stream(
        self,
        messages: Sequence[Message],
        *,
        options: GenerationOptions = NO_OPTIONS,
        on_wait: Callable[[Wait], None] | None = None,
        terms: Terms = ANY_TERMS,
    ) -> AbstractAsyncContextManager[TextStream]:
        """Refuse, as an agent's port."""
        raise AssertionError("nobody here has need of a model")


class DoublingTools:
    """Stands where the tool hop would."""

    async def execute(
        self,
        name: str,
        arguments: Mapping[str, JsonValue],
        *,
        sources: Sequence[DataSource],
        language: str,
        request_id: str,
        partial: Mapping[str, JsonValue] | None = None,
        optional: bool = False,
        limit_s: float | None = None,
    ) -> AgentToolResult:
        """Double the number, whatever the tool."""
        number = arguments["number"]
        assert isinstance(number, int)
        return AgentToolResult(data={"doubled": 2 * number})


def additions(folder: str) -> set[str]:
    """Return the names of the one-file additions of a folder."""
    return {path.stem for path in (ROOT / folder).glob("*.py") if not path.stem.startswith("_")}


@requirement("extension:tool-is-one-file")
def test_the_registry_of_tools_is_the_listing_of_their_folder() -> None:
    names = {tool.name for tool in Registry.load(ToolSettings())}

    assert names
    assert names == additions("services/tool/tools")


@requirement("extension:tool-is-one-file")
async def test_a_tool_file_in_a_configured_folder_is_found_and_runs(
    tmp_path: Path, clock: ManualClock
) -> None:
    (tmp_path / "double.py").write_text(NEW_TOOL, encoding="utf-8")
    settings = ToolSettings(tool_dirs=(tmp_path,))
    resources = ToolResources.create(settings, clock=clock, model=NoModel())
    context = resources.context(
        sources=(), request_id="r-1", language="en", deadline=clock.now() + 5.0
    )

    result = await execute(Registry.load(settings), "double", {"number": 21}, context)

    assert result.data == {"doubled": 42}
    resources.close()


@requirement("extension:agent-is-one-file")
def test_the_registry_of_agents_is_the_listing_of_their_folder() -> None:
    names = {agent.name for agent in AgentRegistry.load()}

    assert names
    assert names == additions("services/domain/agents")


@requirement("extension:agent-is-one-file")
async def test_an_agent_file_in_a_configured_folder_is_found_and_answers(
    tmp_path: Path, clock: ManualClock
) -> None:
    (tmp_path / "doubler.py").write_text(NEW_AGENT, encoding="utf-8")
    agent = AgentRegistry.load([tmp_path]).get("doubler")
    now = clock.now()
    inbound = Inbound(hop="domain", method="", streaming=True, arrived_at=now, deadline=now + 5.0)
    ports = Ports(DoublingTools(), NoModel(), clock, Unwatched())
    run = Run(question="21", language="en", sources=(), session_id="", inbound=inbound, ports=ports)

    answer = await agent.run(run)

    events = list(iter(run.events.take, None))
    assert answer.sources == ("arithmetic",)
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["42"]


@requirement("extension:backend-is-one-file")
def test_every_backend_of_the_folder_is_found_by_its_file_name() -> None:
    names = additions("services/model/backends")

    assert names
    assert {find_backend(name).name for name in names} == names


@requirement("extension:backend-is-one-file")
def test_a_backend_file_in_a_configured_folder_is_found(tmp_path: Path) -> None:
    (tmp_path / "nobody.py").write_text(NEW_BACKEND, encoding="utf-8")

    backend = find_backend("nobody", [tmp_path])

    assert backend.name == "nobody"
