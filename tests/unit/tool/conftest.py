"""Offers a tool context without sockets and a model that says what a test wants."""

from collections.abc import AsyncIterator, Callable, Sequence

import pytest
import pytest_asyncio

from services.runtime.clock import ManualClock
from services.runtime.conversation import Message
from services.runtime.generation import Generation, Usage
from services.tool.config import ToolSettings
from services.tool.context import ToolContext, ToolResources
from services.tool.dataset import Dataset, load
from services.tool.interruption import Interruption
from services.tool.source import DataSource


class ScriptedModel:
    """Answers what the test has set and keeps what it was asked."""

    def __init__(self) -> None:
        self.answer = Generation(
            text=" Electronics grew most. ",
            model="tiny",
            finish_reason="stop",
            usage=Usage(input_token_count=40, output_token_count=6),
        )
        self.asked: list[tuple[Sequence[Message], int]] = []

    async def generate(
        self, messages: Sequence[Message], *, max_output_tokens: int = 0
    ) -> Generation:
        self.asked.append((messages, max_output_tokens))
        return self.answer


MakeContext = Callable[..., ToolContext]


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel()


@pytest_asyncio.fixture
async def make_context(clock: ManualClock, model: ScriptedModel) -> AsyncIterator[MakeContext]:
    """Return a maker of contexts that share one pool of workers, closed after the test."""
    opened: list[ToolResources] = []

    def make(
        *sources: DataSource, remaining_s: float = 10.0, settings: ToolSettings | None = None
    ) -> ToolContext:
        if not opened:
            opened.append(
                ToolResources.create(settings or ToolSettings(), clock=clock, model=model)
            )
        return opened[0].context(
            sources=sources,
            request_id="r1",
            language="en",
            deadline=clock.now() + remaining_s,
        )

    yield make
    for resources in opened:
        assert resources.workers.inflight == 0, "a worker thread is still running"
        resources.close()


@pytest.fixture
def loaded() -> Callable[..., Dataset]:
    """Return a loader of one file given as text or bytes."""

    def load_one(
        content: str | bytes, name: str = "sales.csv", settings: ToolSettings | None = None
    ) -> Dataset:
        raw = content.encode() if isinstance(content, str) else content
        return load([DataSource(name, raw)], settings or ToolSettings(), Interruption())

    return load_one
