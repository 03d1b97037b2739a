"""Keeps the recent runs of this process in memory, within a count, an age and a size."""

from collections.abc import Iterator

from gateway.config import RunsSettings
from gateway.runs.event_json import FINISHED, event_json
from gateway.runs.log import EventLog
from gateway.runs.run import Run
from services.runtime.clock import Clock
from services.runtime.telemetry import tell_defect
from sixhop.type.v1 import artifact_pb2, run_pb2

Key = tuple[str, str]
"""The tenant and the name of a run: what another tenant calls its runs is its own business."""


class RunMemory:
    """Holds runs, newest last, and lets the oldest go. Touched by the event loop only.

    Whatever the load, `byte_count` is at most `max_bytes` after each step: first runs that have
    ended go, then the oldest events of the run that wants room. A defect here ends no run: it is
    logged, and the run is not kept any more.
    """

    def __init__(self, settings: RunsSettings, clock: Clock) -> None:
        """Take how much is kept, and the clock."""
        self._settings = settings
        self._now = clock.now
        self._live: dict[Key, Run] = {}
        self._ended: dict[Key, Run] = {}
        self._refused: dict[Key, Run] = {}
        self._wordy: dict[Key, Run] = {}
        """The runs that have ended and whose words are still there, by their end."""
        self.byte_count = 0
        """What all of them take, about."""

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._live) + len(self._ended) + len(self._refused)

    def __iter__(self) -> Iterator[Run]:
        """Yield all of them, in no order that means anything."""
        yield from self._live.values()
        yield from self._ended.values()
        yield from self._refused.values()

    def find(self, tenant: str, run_id: str) -> Run | None:
        """Return a tenant's run of a name."""
        key = tenant, run_id
        return self._live.get(key) or self._ended.get(key) or self._refused.get(key)

    def holds(self, tenant: str, run_id: str) -> bool:
        """Tell whether a tenant has a run of a name that has begun, whether or not it has ended."""
        key = tenant, run_id
        return key in self._live or key in self._ended

    def begin(self, run: Run) -> None:
        """Keep a run that has begun; one of its name that was refused goes.

        Whoever begins it has made sure that none of its name is held.
        """
        self._take_in(run)
        self._live[run.key] = run
        self._make_room(run)

    def take(self, run: Run, kind: str, event: run_pb2.RunEvent) -> None:
        """Take an event of a run that is no text, with its files as far as they fit.

        Args:
            run: the run.
            kind: which event it is, as `event_json` names them.
            event: the event.
        """
        if run.gone:
            return
        try:
            data = event_json(kind, event)
            taken = run.log.add(int((self._now() - run.began) * 1000), kind, data)
            run.note(kind, data)
            if run.bells:
                run.wake()
            self._count(run, taken)
            if kind == FINISHED:
                for artifact in event.finished.artifacts:
                    self._take_file(run, artifact)
        except Exception as error:  # a defect here must not end the run
            self.give_up(run, error)

    def take_text(self, run: Run, text: str) -> None:
        """Take a piece of a run's text."""
        if run.gone:
            return
        try:
            taken = run.log.add_text(int((self._now() - run.began) * 1000), text)
            if run.bells:
                run.wake()
            # What `_count` does, because every piece of text comes here.
            run.byte_count += taken
            self.byte_count += taken
            settings = self._settings
            if run.byte_count > settings.max_run_bytes or self.byte_count > settings.max_bytes:
                self._make_room(run)
        except Exception as error:  # a defect here must not end the run
            self.give_up(run, error)

    def end(self, run: Run) -> None:
        """Keep a run that has ended as one of those that may go."""
        if run.gone or self._live.pop(run.key, None) is None:
            return
        self._ended[run.key] = run
        if not self._settings.keep_prompts:
            self._wordy[run.key] = run
        self._make_room(run)

    def refuse(self, run: Run) -> None:
        """Keep a run that never began; it takes no place from those that did, nor their name."""
        if self.holds(*run.key):
            return
        self._take_in(run)
        self._refused[run.key] = run
        while len(self._refused) > self._settings.max_refused_count:
            self._evict(next(iter(self._refused.values())))
        self._make_room(run)

    def give_up(self, run: Run, error: Exception) -> None:
        """Keep nothing of a run that cannot be kept whole: it would seem to run for ever."""
        tell_defect(error)
        if run.inbound is not None:
            run.inbound.kept = None
        if not run.gone:
            self._evict(run)

    def tidy(self) -> None:
        """Let go what is too old."""
        now, settings = self._now(), self._settings
        for run in list(self._wordy.values()):
            if _age_s(run, now) <= settings.resume_s:
                break
            del self._wordy[run.key]
            freed = run.forget_words()
            run.byte_count -= freed
            self.byte_count -= freed
        for kept in (self._ended, self._refused):
            for run in list(kept.values()):
                if _age_s(run, now) <= settings.max_age_s:
                    break
                self._evict(run)

    def _take_file(self, run: Run, artifact: artifact_pb2.Artifact) -> None:
        if run.gone:
            return
        fits = run.byte_count + len(artifact.content) <= self._settings.max_run_bytes
        self._count(run, run.take_file(artifact, keep=fits))

    def _count(self, run: Run, taken: int) -> None:
        run.byte_count += taken
        self.byte_count += taken
        self._make_room(run)

    def _take_in(self, run: Run) -> None:
        if run.key in self._refused:
            self._evict(self._refused[run.key])
        self.byte_count += run.byte_count

    def _make_room(self, run: Run) -> None:
        settings = self._settings
        while run.byte_count > settings.max_run_bytes and self._shorten(run):
            pass
        while len(self._live) + len(self._ended) > settings.max_count:
            self._evict(next(iter((self._ended or self._live).values())))
        while self.byte_count > settings.max_bytes:
            oldest = next(iter((self._ended or self._refused).values()), run)
            if oldest is not run:
                self._evict(oldest)
            elif not self._shorten(run):
                self._evict(run)

    def _shorten(self, run: Run) -> bool:
        """Let the oldest events of a run go; return False when it has none."""
        if run.gone or not run.log.byte_count:
            return False
        freed = run.log.drop_oldest()
        run.byte_count -= freed
        self.byte_count -= freed
        return True

    def _evict(self, run: Run) -> None:
        for kept in (self._live, self._ended, self._refused, self._wordy):
            if kept.get(run.key) is run:
                del kept[run.key]
        self.byte_count -= run.byte_count
        run.gone = True
        # Whoever still holds it holds nothing but its record.
        run.files, run.log = {}, EventLog()
        run.wake()


def _age_s(run: Run, now: float) -> float:
    return 0.0 if run.ended_at is None else now - run.ended_at
