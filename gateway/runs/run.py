"""Follows one run: notes what its events say, and gives them to any number of readers."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from gateway.hops import hops_told
from gateway.runs.event_json import (
    DEGRADED,
    FINISHED,
    ROUTED,
    TOOL_CALL,
    artifact_json,
)
from gateway.runs.log import EventLog, Told
from gateway.runs.record import RunRecord, RunWords, Status
from services.runtime.call import AttemptReport, Inbound
from services.runtime.clock import Clock
from services.runtime.doorbell import Doorbell
from sixhop.type.v1 import artifact_pb2

RECORD_BYTES = 3_000
"""What a run takes beside its events and files, about."""
LOOK_S = 5.0
"""How often a reader looks by itself; it is told of everything that comes."""


class LagError(Exception):
    """Says that a reader is so late that events which it has not seen are gone."""


class Run:
    """Is one run. Touched by the event loop only."""

    def __init__(self, record: RunRecord, inbound: Inbound | None, clock: Clock) -> None:
        """Take what is known at its beginning, and the call that it is.

        One without a call is not of this process, and nothing comes to it.
        """
        now = clock.now()
        self.record = record
        self.key = record.tenant, record.run_id
        """Tells it from all others."""
        self.log = EventLog()
        self.files: dict[str, bytes] = {}
        self.byte_count = RECORD_BYTES + 2 * len(record.question or "")
        """What all of it takes, about."""
        self.inbound = inbound
        """The call, while it runs."""
        self.elsewhere = inbound is None
        """Whether it is, or was, another gateway's."""
        self.ended_at = now if inbound is None and record.status is not Status.RUNNING else None
        """The instant of its end."""
        self.wordy = True
        """Whether what it said is still there."""
        self.gone = False
        """Whether it was evicted: nothing is kept of it any more."""
        self.began = now if inbound is None else inbound.arrived_at
        """The instant from which its events are counted."""
        self._now = clock.now
        self._reports: Sequence[AttemptReport] = ()
        self._tool_calls: Sequence[Mapping[str, Any]] = ()
        self._sources: Sequence[str] = ()
        self.bells: set[Doorbell] = set()
        """Those who read it as it goes on."""

    @classmethod
    def read(cls, record: RunRecord, log: EventLog, words: RunWords | None, clock: Clock) -> "Run":
        """Return a run as another gateway has kept it."""
        run = cls(record, None, clock)
        run.log = log
        run.wordy = words is not None
        if words is not None:
            run._tool_calls, run._sources = words.tool_calls, words.sources
        return run

    @property
    def live(self) -> bool:
        """Return whether it still runs."""
        return self.ended_at is None

    def take_file(self, artifact: artifact_pb2.Artifact, *, keep: bool) -> int:
        """Take a file, or only that there was one; return how many bytes more there are."""
        self.record.artifacts.append({**artifact_json(artifact), "kept": keep})
        if not keep:
            return 0
        content = artifact.content
        self.files[artifact.name] = content
        return len(content)

    def end(self, status: Status, error: Mapping[str, Any] | None) -> None:
        """Take how it ended."""
        record, inbound = self.record, self.inbound
        now = self.ended_at = self._now()
        record.status, record.error = status, error
        record.elapsed_ms = round((now - self.began) * 1000)
        if inbound is not None:
            self._reports = inbound.reports
            self.inbound = None
        if self.bells:
            self.wake()

    def wake(self) -> None:
        """Let every reader look."""
        for bell in self.bells:
            bell.ring()

    def told_record(self) -> RunRecord:
        """Return the record with what is worked out only for those who read it."""
        record = self.record
        record.event_count = max(record.event_count, self.log.sequence)
        if self._reports:
            record.hops = hops_told(self._reports)
            self._reports = ()
        return record

    def words(self) -> RunWords | None:
        """Return what it said; None when that is not kept any more."""
        if not self.wordy:
            return None
        return RunWords(self.log.text(), self._tool_calls, self._sources)

    def forget_words(self) -> int:
        """Keep no words any more; return how many bytes less there are."""
        self.wordy = False
        before = self.log.byte_count
        self.log = self.log.without_words()
        self._tool_calls, self._sources = (), ()
        return before - self.log.byte_count

    async def follow(self, after: int) -> AsyncGenerator[list[Told], None]:
        """Yield the events after a number, in lists as they come, until the run has ended.

        Raises:
            LagError: the reader was so slow that some went before it could have them. What is gone
                already when it begins is passed over; it sees that from the numbers.
        """
        bell = Doorbell()
        self.bells.add(bell)
        try:
            after = max(after, self.log.first - 1)
            while True:
                if after < self.log.first - 1 and self.wordy:
                    raise LagError
                events = list(self.log.told(after))
                if events:
                    after = events[-1].sequence
                    yield events
                elif self.live and not self.gone:
                    await bell.wait(LOOK_S)
                else:
                    return
        finally:
            self.bells.discard(bell)

    def note(self, kind: str, data: Mapping[str, Any]) -> None:
        """Note what an event says of the run as a whole, as `event_json` writes it."""
        record = self.record
        if kind == ROUTED:
            record.agent = data["agent"]
        elif kind == DEGRADED:
            record.degradations.append(data)
        elif kind == TOOL_CALL:
            self._tool_calls = (*self._tool_calls, data)
        elif kind == "restarted":
            self._tool_calls = ()
        elif kind == FINISHED:
            record.agent = data["agent"] or record.agent
            record.model = data["model"]
            record.usage = data["usage"]
            record.finish_reason = data["finish_reason"]
            record.missing_parts = data["missing_parts"]
            lesser = data["degraded"] or record.degradations or record.missing_parts
            record.status = Status.DEGRADED if lesser else Status.OK
            self._sources = tuple(data["sources"])
