"""Gives a running tool what it may use."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from services.runtime.clock import Clock
from services.runtime.conversation import Message
from services.runtime.generation import Generation
from services.tool.cache import BoundedCache
from services.tool.config import ToolSettings
from services.tool.source import DataSource
from services.tool.workers import WorkerPool

T = TypeVar("T")


class ModelPort(Protocol):
    """Generates text somewhere else; the tool room does not care where."""

    async def generate(
        self, messages: Sequence[Message], *, max_output_tokens: int = 0
    ) -> Generation:
        """Return a whole generation, or raise a SixhopError."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """Is what one execution of a tool sees of the world."""

    sources: tuple[DataSource, ...]
    """The caller's data; empty means the default dataset of the data folder."""
    request_id: str
    """Names this execution in logs; the same for a repeated call."""
    language: str
    """The language of the run's question, `en` or `zh`."""
    deadline: float
    """The instant at which this hop must have answered, on `clock`."""
    clock: Clock
    """Tells the time; tests set their own."""
    settings: ToolSettings
    """The bounds of the tool room."""
    model: ModelPort
    """The model hop."""
    workers: WorkerPool
    """The threads of this process."""
    cache: BoundedCache
    """What earlier executions loaded, by the digest of its input."""

    def time_remaining_s(self) -> float:
        """Return the seconds to this hop's own deadline; negative once it has passed."""
        return self.deadline - self.clock.now()

    async def run_blocking(
        self,
        work: Callable[[], T],
        *,
        interrupt: Callable[[], None] | None = None,
        timeout_s: float | None = None,
    ) -> T:
        """Run blocking work in a thread, until this hop's deadline at most.

        Args:
            work: what to run; heavy libraries are imported in it, not before.
            interrupt: makes `work` end soon; called when the caller goes or time is over.
            timeout_s: a shorter limit than the time remaining.

        Raises:
            BudgetTooSmallError: no time remains.
            SelfTimeoutError: the work did not end in time.
        """
        remaining_s = self.time_remaining_s()
        limit_s = remaining_s if timeout_s is None else min(timeout_s, remaining_s)
        # A limit that the caller's deadline sets is not the tool's own.
        cause = "deadline" if limit_s == remaining_s else "step_timeout"
        return await self.workers.run(work, timeout_s=limit_s, interrupt=interrupt, cause=cause)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResources:
    """Holds what all executions of one process share; close it once, at the end."""

    settings: ToolSettings
    """The bounds of the tool room."""
    clock: Clock
    """Tells the time."""
    model: ModelPort
    """The model hop."""
    workers: WorkerPool
    """The threads of this process."""
    cache: BoundedCache
    """What executions loaded and may need again."""

    @classmethod
    def create(cls, settings: ToolSettings, *, clock: Clock, model: ModelPort) -> "ToolResources":
        """Return the resources that the settings ask for."""
        return cls(
            settings=settings,
            clock=clock,
            model=model,
            workers=WorkerPool(
                max_workers=settings.worker_count, interrupt_wait_s=settings.interrupt_wait_s
            ),
            cache=BoundedCache(settings.dataset_cache_count),
        )

    def context(
        self,
        *,
        sources: tuple[DataSource, ...],
        request_id: str,
        language: str,
        deadline: float,
    ) -> ToolContext:
        """Return the context of one execution; `deadline` is an instant on the clock."""
        return ToolContext(
            sources=sources,
            request_id=request_id,
            language=language,
            deadline=deadline,
            clock=self.clock,
            settings=self.settings,
            model=self.model,
            workers=self.workers,
            cache=self.cache,
        )

    def close(self) -> None:
        """Take no more work and forget what was loaded."""
        self.workers.close()
