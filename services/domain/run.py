"""Is what an agent sees of one run: the question, tools, a model, and a way to speak."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pydantic import JsonValue

from services.domain import wording
from services.domain.availability import Availability, OfferedTool, Unavailable
from services.domain.delivery import Delivery
from services.domain.ports import ModelPort, ToolPort, ToolResult, request_id
from services.domain.reserve import cut_off_after
from services.domain.sources import DataSource
from services.domain.telling import Telling
from services.runtime.call import Degradation, Fallback, Inbound
from services.runtime.clock import Clock
from services.runtime.conversation import Message
from services.runtime.errors import (
    BudgetTooSmallError,
    CircuitOpenError,
    LoopDetectedError,
    PermissionDeniedError,
    SixhopError,
)
from services.runtime.failover_stream import Terms
from services.runtime.generation import TextStream
from services.runtime.generation_options import NO_OPTIONS, GenerationOptions
from services.runtime.switch import Switch


@dataclass(frozen=True, slots=True)
class Ports:
    """Holds what all runs of a process share."""

    tools: ToolPort
    model: ModelPort
    clock: Clock
    availability: Availability


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Is what routing knew of the model before anyone waited for it."""

    backup: bool = False
    """The first model would refuse, or be late."""
    compressed: bool = False
    """Less of the conversation is read sooner."""


NO_ADVICE = Advice()


@dataclass(frozen=True, slots=True)
class Partial:
    """Is what an agent has without the answer of a tool."""

    data: Mapping[str, JsonValue]
    """As the tool would have given it."""
    mechanism: str = Fallback.PARTIAL.value
    """What the answer calls it, such as `template`."""


class Run(Telling):
    """Is one run of one agent."""

    def __init__(
        self,
        *,
        question: str,
        language: str,
        sources: Sequence[DataSource],
        session_id: str,
        inbound: Inbound,
        ports: Ports,
        history: Sequence[Message] = (),
        options: GenerationOptions | None = None,
        delivery: Delivery = Delivery.RESTARTABLE,
        advice: Advice = NO_ADVICE,
        allowed_tools: frozenset[str] | None = None,
    ) -> None:
        """Take the question and the ways out.

        Args:
            question: the user's words.
            language: the language to answer in, `en` or `zh`.
            sources: the data that the question is about; empty for the shipped sample.
            session_id: groups runs of one conversation; may be empty.
            inbound: the call that this run serves.
            ports: the tools, the model, the clock, and which tools can be used.
            history: what was said before, oldest first, without the question.
            options: how its text is to be generated, and the caller's own tools; None when the
                caller leaves all of that to the agent.
            delivery: when text reaches its reader, and whether it can be taken back.
            advice: what routing knew of the model.
            allowed_tools: the tools that the tenant may use; None for all.
        """
        super().__init__(language, delivery)
        self.question = question
        self.sources = tuple(sources)
        self.session_id = session_id
        self.history = tuple(history)
        self.options = options
        self._advice = advice
        self._allowed_tools = allowed_tools
        self._inbound = inbound
        self._ports = ports
        self._actions: set[str] = set()
        """What was done already: the ids of the tools' executions."""

    def time_remaining_s(self) -> float:
        """Return how long this hop may still work before it has to answer by itself."""
        return self._inbound.self_deadline - self._ports.clock.now()

    def offered(self) -> Sequence[OfferedTool]:
        """Return the tools that can be used now; one whose breaker is open is none of them."""
        return [each for each in self._ports.availability.offered() if self._allows(each.name)]

    def unavailable(self) -> Mapping[str, Unavailable]:
        """Return the tools that cannot be used for now, by name."""
        unavailable = self._ports.availability.unavailable()
        return {name: why for name, why in unavailable.items() if self._allows(name)}

    def leave_out_unavailable(self, steps: Mapping[str, str]) -> frozenset[str]:
        """Leave out, before anything is waited for, the optional steps whose tool cannot be used.

        Args:
            steps: the title of each optional step, by its tool.

        Returns:
            The tools that are not to be used in this run.
        """
        unavailable = self.unavailable()
        out: dict[str, tuple[str, str]] = {}
        for name in steps:
            if not self._allows(name):
                out[name] = wording.not_allowed(name, self.language), PermissionDeniedError.reason
            elif name in unavailable:
                reason = wording.unavailable(name, unavailable[name].back_in_s, self.language)
                out[name] = reason, CircuitOpenError.reason
        for name, (reason, error_reason) in out.items():
            self.skipped(name, title=steps[name], reason=reason)
            self._lack(name, reason, error_reason)
        return frozenset(out)

    async def tool(
        self,
        name: str,
        arguments: Mapping[str, JsonValue],
        *,
        title: str,
        part: str = "",
        partial: Partial | None = None,
    ) -> ToolResult:
        """Execute a tool as one step of the run.

        When it cannot answer, what it declares is given instead, and the answer says so. The same
        tool with the same arguments is not executed twice in one run: that is a loop.

        Args:
            name: the tool.
            arguments: as the tool's schema says.
            title: what the step does, for people, in the run's language.
            part: the part of the answer that comes of it; the tool's name without one.
            partial: what the agent has without it.

        Raises:
            LoopDetectedError: the run has taken this step already.
            SixhopError: the tool refused, failed, or did not answer in time, and nothing that it
                declares fits.
        """
        return await self._step(name, arguments, title, part or name, partial)

    async def optional(
        self,
        name: str,
        arguments: Mapping[str, JsonValue],
        *,
        title: str,
        expected_s: float,
        reserve_s: float,
        part: str = "",
        partial: Partial | None = None,
    ) -> ToolResult | None:
        """Execute a tool whose answer the run can do without.

        It is not begun when it would not leave the reserve, and it is ended when it begins to use
        it up. Whatever is missing then, the answer says so.

        Args:
            name: the tool.
            arguments: as the tool's schema says.
            title: what the step does, for people, in the run's language.
            expected_s: how long it takes as a rule.
            reserve_s: what the steps after it need, the last words included.
            part: the part of the answer that comes of it; the tool's name without one.
            partial: what the agent has without it.

        Returns:
            What the tool gave, or what was given instead; None when it is left out.

        Raises:
            LoopDetectedError: the run has taken this step already.
            SixhopError: as `tool` does, when the tool declares that errors must be reported.
        """
        part = part or name
        if not self._allows(name):
            reason = wording.not_allowed(name, self.language)
            self.skipped(name, title=title, reason=reason)
            return self._instead(part, partial, reason, PermissionDeniedError.reason)
        needed_s, left_s = expected_s + reserve_s, self.time_remaining_s()
        if left_s < needed_s:
            reason = wording.too_late(left_s, needed_s, self.language)
            self.skipped(name, title=title, reason=reason)
            return self._instead(part, partial, reason, BudgetTooSmallError.reason)
        result = await self._step(
            name, arguments, title, part, partial, limit_s=left_s - reserve_s, optional=True
        )
        given = result.degradation
        return None if given is not None and given.mechanism is Fallback.SKIP else result

    @asynccontextmanager
    async def generate(
        self,
        messages: Sequence[Message],
        *,
        options: GenerationOptions = NO_OPTIONS,
        reserve_s: float = 0.0,
        held: bool = False,
    ) -> AsyncIterator[TextStream]:
        """Return a generation to iterate over; by itself it says only that the model hop waits.

        `async with run.generate([...]) as generation: async for text in generation: run.say(text)`,
        then `generation.result` has the text and names the model. When another model has to begin
        anew, what was said since the first text is taken back; what was said before stays.

        Args:
            messages: the conversation, oldest first.
            options: how the text is to be generated, and the tools that the model may ask for.
            reserve_s: what the agent needs afterwards; the generation ends before it is used up.
            held: True when the agent says nothing of the text before it is whole: then another
                model may begin anew, however text reaches its reader.

        Raises:
            SixhopError: the generation failed, or was not done in time.
        """
        limit_s = self.time_remaining_s() - reserve_s if reserve_s > 0 else None
        async with (
            cut_off_after(limit_s, self._inbound, self.language),
            self._ports.model.stream(
                messages,
                options=options,
                on_wait=self.model_waits,
                terms=self._terms(reserve_s, held=held),
            ) as generation,
        ):
            yield generation

    def _terms(self, reserve_s: float, *, held: bool) -> Terms:
        """Return what is known and allowed for one generation."""
        before = ""

        def first() -> None:
            nonlocal before
            before = self.said

        def switched(switch: Switch) -> None:
            reason = wording.another_model(switch, self.language)
            if switch.voided and not held:
                self.restart(reason)
                self.say(before)
            self.degraded(
                mechanism=Fallback.BACKUP.value,
                part="answer",
                reason=reason,
                error_reason=switch.error_reason,
            )

        return Terms(
            live=not self.restartable and not held,
            prefers_backup=self._advice.backup,
            compressed=self._advice.compressed,
            language=self.language,
            reserve_s=reserve_s,
            on_first=first,
            on_switch=switched,
        )

    async def _step(
        self,
        name: str,
        arguments: Mapping[str, JsonValue],
        title: str,
        part: str,
        partial: Partial | None,
        *,
        limit_s: float | None = None,
        optional: bool = False,
    ) -> ToolResult:
        if not self._allows(name):
            raise PermissionDeniedError(wording.not_allowed(name, self.language), cause="tools")
        step = self._begin(name, title)
        began = self._ports.clock.now()
        try:
            action = request_id(self._inbound.identity.run_id, name, arguments)
            self._refuse_repeat(name, action)
            result = await self._ports.tools.execute(
                name,
                arguments,
                sources=self.sources,
                language=self.language,
                request_id=action,
                partial=None if partial is None else partial.data,
                optional=optional,
                limit_s=limit_s,
            )
        except SixhopError as error:
            elapsed_s = self._ports.clock.now() - began
            self._fail(step, name, elapsed_s, error.reason, error.message)
            raise
        given = result.degradation
        self._end(step, name, self._ports.clock.now() - began, given)
        if given is not None:
            self._tell_given(name, part, partial, given)
        return result

    def _refuse_repeat(self, name: str, action: str) -> None:
        """Refuse what the agent has done before; the runtime's own retries do not come here."""
        if action in self._actions:
            raise LoopDetectedError(wording.repeated(name, self.language), cause="same_action")
        self._actions.add(action)

    def _tell_given(
        self, name: str, part: str, partial: Partial | None, given: Degradation
    ) -> None:
        reason = wording.why(name, given, self.language)
        if given.mechanism is Fallback.SKIP:
            self._lack(part, reason, given.reason)
            return
        mechanism = given.mechanism.value
        if given.mechanism is Fallback.PARTIAL and partial is not None:
            mechanism = partial.mechanism
        self.degraded(
            mechanism=mechanism,
            part=part,
            reason=reason,
            age_s=given.age_s,
            error_reason=given.reason,
        )

    def _allows(self, tool: str) -> bool:
        return self._allowed_tools is None or tool in self._allowed_tools

    def _instead(
        self, part: str, partial: Partial | None, reason: str, error_reason: str
    ) -> ToolResult | None:
        """Give what there is without a step that was not tried."""
        if partial is None:
            self._lack(part, reason, error_reason)
            return None
        self.degraded(
            mechanism=partial.mechanism,
            part=part,
            reason=reason,
            error_reason=error_reason,
        )
        return ToolResult(dict(partial.data))

    def _lack(self, part: str, reason: str, error_reason: str) -> None:
        self.missing_parts.append(part)
        self.degraded(
            mechanism=Fallback.SKIP.value, part=part, reason=reason, error_reason=error_reason
        )
