"""Runs agents against tools and a model that a test scripts."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from pydantic import JsonValue

from services.domain.agent import Agent, Answer
from services.domain.availability import OfferedTool, Unavailable
from services.domain.delivery import Delivery
from services.domain.events import Degraded, Event, StepFinished, StepState, TextDelta
from services.domain.ports import Artifact, ToolResult
from services.domain.run import Ports, Run
from services.domain.sources import DataSource
from services.runtime.call import Degradation, Fallback, Inbound
from services.runtime.clock import ManualClock
from services.runtime.conversation import Message, ToolCall
from services.runtime.errors import SixhopError
from services.runtime.failover_stream import ANY_TERMS, Terms
from services.runtime.generation import Generation, TextStream, Usage, Wait
from services.runtime.generation_options import NO_OPTIONS, GenerationOptions
from services.runtime.output_limit import OutputLimit
from tests.unit.domain.database import Database


class Tools:
    """Answers `profile` and `sql` from a database, the others as the test says."""

    def __init__(self, database: Database, table: str) -> None:
        self._database = database
        self._table = table
        self.prose = ToolResult({"text": "", "model": "tiny", "finish_reason": "stop"})
        self.results: list[dict[str, JsonValue]] = []
        self.failures: dict[str, SixhopError] = {}
        self.ages_s: dict[str, float] = {}
        """How old the answers are of tools that give earlier ones."""
        self.out: set[str] = set()
        """The tools whose breaker is open."""
        self.calls: list[tuple[str, Mapping[str, JsonValue]]] = []

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.calls]

    def arguments(self, name: str) -> Mapping[str, JsonValue]:
        return next(arguments for called, arguments in self.calls if called == name)

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
    ) -> ToolResult:
        self.calls.append((name, arguments))
        if name in self.failures:
            return self._instead(name, partial, optional=optional)
        if name in self.ages_s:
            given = Degradation(
                mechanism=Fallback.CACHE, reason="CIRCUIT_OPEN", age_s=self.ages_s[name]
            )
            return replace(self._answer(name, arguments), degradation=given)
        return self._answer(name, arguments)

    def offered(self) -> tuple[OfferedTool, ...]:
        return ()

    def unavailable(self) -> Mapping[str, Unavailable]:
        return dict.fromkeys(self.out, Unavailable("slow_calls", 12.0))

    def _instead(
        self, name: str, partial: Mapping[str, JsonValue] | None, *, optional: bool
    ) -> ToolResult:
        """Give what the shipped tools declare: a partial answer, or nothing, or the error."""
        error = self.failures[name]
        if partial is None and not optional:
            raise error
        kind = Fallback.SKIP if partial is None else Fallback.PARTIAL
        given = Degradation(mechanism=kind, reason=error.reason, message=error.message)
        return ToolResult(dict(partial or {}), degradation=given)

    def _answer(self, name: str, arguments: Mapping[str, JsonValue]) -> ToolResult:
        match name:
            case "profile":
                return ToolResult(dict(self._database.profile(self._table)))  # type: ignore[arg-type]
            case "sql":
                return self._query(str(arguments["query"]))
            case "summarise":
                return self.prose
            case "search":
                return ToolResult({"results": list(self.results)})
            case _:
                return ToolResult({}, (Artifact(f"{name}.bin", "application/x", b"1"),))

    def _query(self, sql: str) -> ToolResult:
        rows = self._database.rows(sql)
        names = list(rows[0]) if rows else []
        columns: list[JsonValue] = [{"name": name, "type": "text"} for name in names]
        listed = [[row[name] for name in names] for row in rows]
        return ToolResult({"columns": columns, "rows": listed})  # type: ignore[dict-item]


class Model:
    """Streams what the test says, then fails if the test says so."""

    def __init__(
        self,
        *pieces: str,
        failure: SixhopError | None = None,
        finish_reason: str = "stop",
        calls: Sequence[ToolCall] = (),
        limit: OutputLimit | None = None,
    ) -> None:
        self.limit = limit
        self.pieces = pieces
        self.failure = failure
        self.finish_reason = finish_reason
        self.calls = tuple(calls)
        self.asked: list[Sequence[Message]] = []
        self.options: list[GenerationOptions] = []
        self.terms = ANY_TERMS

    @asynccontextmanager
    async def stream(
        self,
        messages: Sequence[Message],
        *,
        options: GenerationOptions = NO_OPTIONS,
        on_wait: Callable[[Wait], None] | None = None,
        terms: Terms = ANY_TERMS,
    ) -> AsyncIterator[TextStream]:
        self.asked.append(messages)
        self.options.append(options)
        self.terms = terms
        yield _Scripted(self)


class _Scripted:
    def __init__(self, model: Model) -> None:
        self._model = model
        self._result = Generation(
            model="tiny",
            finish_reason=model.finish_reason,
            usage=Usage(10, 5),
            limit=model.limit,
        )

    @property
    def result(self) -> Generation:
        return self._result

    async def __aiter__(self) -> AsyncIterator[str]:
        for piece in self._model.pieces:
            self._result.text += piece
            yield piece
        self._result.tool_calls = self._model.calls
        if self._model.failure is not None:
            raise self._model.failure


async def answered(
    agent: Agent,
    question: str,
    tools: Tools,
    *,
    model: Model | None = None,
    language: str = "en",
    time_s: float = 30.0,
    history: Sequence[Message] = (),
    options: GenerationOptions | None = None,
    delivery: Delivery = Delivery.RESTARTABLE,
) -> tuple[Answer, list[Event]]:
    """Run an agent to its end; the clock stands still, so `time_s` are left all the time."""
    clock = ManualClock()
    now = clock.now()
    inbound = Inbound(
        hop="domain", method="RunAgent", streaming=True, arrived_at=now, deadline=now + time_s
    )
    ports = Ports(tools, model or Model("hello"), clock, tools)
    run = Run(question=question, language=language, sources=(), session_id="", inbound=inbound,
              ports=ports, history=history, options=options, delivery=delivery)  # fmt: skip
    answer = await agent.run(run)
    events = events_of(run)
    missing = tuple(dict.fromkeys((*run.missing_parts, *answer.missing)))
    return replace(answer, missing=missing), events


def events_of(run: Run) -> list[Event]:
    return list(iter(run.events.take, None))


def text_of(events: Sequence[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def degraded_of(events: Sequence[Event]) -> list[tuple[str, str]]:
    return [(event.mechanism, event.part) for event in events if isinstance(event, Degraded)]


def reasons_of(events: Sequence[Event]) -> list[str]:
    return [event.reason for event in events if isinstance(event, Degraded)]


def skipped_of(events: Sequence[Event]) -> list[str]:
    return [
        event.name
        for event in events
        if isinstance(event, StepFinished) and event.state is StepState.SKIPPED
    ]
