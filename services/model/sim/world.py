"""Holds the state of one simulated provider, and takes requests into it."""

import hashlib
import random
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from services.model.sim.asking import Ask
from services.model.sim.config import SimSettings
from services.model.sim.dialect import PromptCache, compose
from services.model.sim.door import Request
from services.model.sim.exchange import Exchange
from services.model.sim.framing import Framer
from services.model.sim.log import HIDDEN_HEADERS, REFUSED, Log, Record
from services.model.sim.queueing import Slots
from services.model.sim.script import NOTHING, Script, Step, Timeline
from services.model.sim.selection import Asked, Choice, Selector
from services.model.sim.timing import Pace, Timing
from services.model.sim.verdict import verdict
from services.model.sim.wire import Wire
from services.runtime.clock import Clock
from services.runtime.config import ConfigError
from services.runtime.sections import read_section

DEADLINE_HEADER = "x-sixhop-deadline-ms"
FAULT_HEADER = "x-sim-fault"
TENANT_HEADER = "x-sim-tenant"
RECENT_COUNT = 50
"""So many answers tell how long one takes."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """Is a request that was noted, and what it met."""

    record: Record
    choice: Choice


class World:
    """Is one simulated provider, without its sockets."""

    def __init__(self, settings: SimSettings, clock: Clock) -> None:
        """Start empty, with the rules of the settings in force.

        Raises:
            UnknownFaultError: a rule of the settings cannot be read.
        """
        self.settings = settings
        self.clock = clock
        self.log = Log(clock, settings.max_log_count)
        self.slots = Slots(settings.max_concurrency, settings.max_queued)
        self.selector = Selector(settings.seed, clock)
        self.selector.replace(settings.faults)
        self.timeline = Timeline(Script(), clock)
        self.step = NOTHING
        """The step of the script that is in force."""
        self._cache = PromptCache()
        self._recent_s: deque[float] = deque(maxlen=RECENT_COUNT)

    def arrive(self, request: Request, ask: Ask, connection: int) -> Arrival:
        """Note a request, and choose what it meets.

        Raises:
            UnknownFaultError: it asks for a fault that does not exist.
        """
        headers = request.headers
        digest = ask.digest()
        request_id = headers.get("x-request-id") or f"#{digest}"
        attempt = self.log.attempt(request_id)
        tenant = str(headers.get(TENANT_HEADER) or ask.body.get("user") or "")
        asked = Asked(
            request_id=request_id,
            attempt=attempt,
            model=ask.model,
            tenant=tenant,
            stream=ask.stream,
            header=headers.get(FAULT_HEADER, ""),
            words=ask.question if self.settings.obeys_words else "",
        )
        choice = self.selector.choose(asked)
        deadline = headers.get(DEADLINE_HEADER, "")
        self.log.count += 1
        record = Record(
            number=self.log.count,
            connection=connection,
            request_id=request_id,
            attempt=attempt,
            arrived_ms=self.log.now_ms(),
            model=ask.model,
            stream=ask.stream,
            tenant=tenant,
            fault=choice.rule.name,
            chosen_by=choice.by,
            digest=digest,
            headers=_shown(headers),
            deadline_ms=int(deadline) if deadline.isdecimal() else None,
            message_count=len(ask.messages),
            prompt_tokens=ask.prompt_tokens,
            max_tokens=ask.max_tokens,
            body=ask.body,
        )
        self.log.arrive(record)
        return Arrival(record, choice)

    def reject(self, request: Request, connection: int) -> None:
        """Note a request that cannot be read, and was refused by 400."""
        digest = hashlib.sha256(request.body).hexdigest()[:16]
        request_id = request.headers.get("x-request-id") or f"#{digest}"
        self.log.count += 1
        record = Record(
            number=self.log.count,
            connection=connection,
            request_id=request_id,
            attempt=self.log.attempt(request_id),
            arrived_ms=self.log.now_ms(),
            model="",
            stream=False,
            tenant="",
            fault="",
            chosen_by="",
            digest=digest,
            headers=_shown(request.headers),
            deadline_ms=None,
            status=400,
            refusal="bad_request",
        )
        self.log.arrive(record)
        self.log.end(record, REFUSED)

    def exchange(self, ask: Ask, arrival: Arrival, wire: Wire, authorization: str) -> Exchange:
        """Return what a request is answered with."""
        settings, record, fault = self.settings, arrival.record, arrival.choice.rule.fault
        timing = Timing.of(settings)
        # A seed of the request's own replays its times whatever came before it.
        own = ask.body.get("seed")
        which = f"own {own}" if own is not None else f"{record.request_id}/{record.attempt}"
        rng = random.Random(f"{settings.seed}/{which}")
        return Exchange(
            ask=ask,
            fault=fault,
            wire=wire,
            framer=Framer(fault),
            pace=Pace(timing, fault, rng),
            record=record,
            composition=compose(ask, fault, settings, self._cache.take(ask)),
            settings=settings,
            timing=timing,
            slots=self.slots,
            log=self.log,
            clock=self.clock,
            arrived=record.arrived_ms / 1000,
            authorization=authorization,
            slow=lambda: self.step.slowdown,
        )

    def answered(self, length_s: float) -> None:
        """Note how long an answer took from its arrival to its end."""
        self._recent_s.append(length_s)

    def change(self, changes: dict[str, Any]) -> None:
        """Change settings while it runs.

        Raises:
            ConfigError: a setting is unknown, its value does not fit, or it cannot be changed now.
        """
        for name in changes:
            if name in FIXED:
                raise ConfigError(f"sim.{name} can be set at the start only")
        table = self.settings.model_dump() | changes
        self.settings = read_section("sim", SimSettings, table)
        if "faults" in changes:
            self.selector.replace(self.settings.faults)
        self.slots.max_queued = self.settings.max_queued
        self._resize()

    def apply(self, step: Step) -> None:
        """Put a step of the script in force."""
        self.step = step
        self.selector.follow(step.rules())
        self._resize()

    def health(self) -> dict[str, Any]:
        """Return what `/v1/health` answers: how long answers take, and how many more fit."""
        settings, slots = self.settings, self.slots
        expected_s = settings.ttft_median_s + settings.token_median_s * settings.answer_tokens
        recent = self._recent_s
        latency_s = sum(recent) / len(recent) if recent else expected_s
        free = max(0, slots.limit - slots.inflight - slots.queued)
        return {
            "status": "ok" if free else "busy",
            "estimated_qps": round(free / max(latency_s, 0.001), 3),
            "avg_latency_ms": round(latency_s * 1000, 3),
            "inflight": slots.inflight,
            "queued": slots.queued,
            "limit": slots.limit,
            "step": self.step.about,
        }

    def verdict(self) -> dict[str, Any]:
        """Return what `/verdict` answers."""
        return {"seed": self.settings.seed, **verdict(self.log.records, self.log.now_ms())}

    def reset(self) -> None:
        """Forget what was: log, queue, caches, and rules but for those of the settings."""
        self.log.reset()
        self.selector.replace(self.settings.faults)
        self._cache = PromptCache()
        self._recent_s.clear()

    def _resize(self) -> None:
        self.slots.resize(self.step.max_concurrency or self.settings.max_concurrency)


def _shown(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name not in HIDDEN_HEADERS}


FIXED = ("host", "port", "control_port", "script", "max_log_count")
"""Settings that only a start reads."""
