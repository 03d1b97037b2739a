"""Keeps the book of runs: takes each in as it comes, whichever door it came by, and shows them."""

from collections.abc import Callable

from gateway.config import RunsSettings
from gateway.runs.memory import RunMemory
from gateway.runs.record import RunRecord, Status, error_json
from gateway.runs.run import Run
from services.runtime.call import Inbound
from services.runtime.clock import Clock
from services.runtime.errors import (
    AlreadyExistsError,
    RunCancelledError,
    SixhopError,
    UnauthenticatedError,
)
from services.runtime.guarding import Guard
from services.runtime.telemetry import tell_defect
from sixhop.type.v1 import run_pb2

RUNS = frozenset({"Run", "Ask"})
"""The methods that are runs."""
TIDY_INTERVAL_S = 1.0


class RunBook(Guard[Inbound]):
    """Takes every run in, and how it ended.

    It is the outermost guard of the gateway's doors: it sees every end as the client does. Where a
    run is made, `begin` is told of it, and the memory of its events. Nothing of this may end or
    delay a run: what goes wrong here is logged.
    """

    def __init__(
        self,
        pod: str,
        settings: RunsSettings,
        clock: Clock,
        share: Callable[[Run], None] | None = None,
    ) -> None:
        """Take what is around runs.

        Args:
            pod: this process.
            settings: how much is kept.
            clock: the clock.
            share: is told of every run that begins or ends here, but for those that are refused;
                None where runs are not shared.
        """
        self.memory = RunMemory(settings, clock)
        self._pod = pod
        self._settings = settings
        self._clock = clock
        self._share = share

    def begin(self, inbound: Inbound, question: run_pb2.Question, agent: str) -> None:
        """Take a run in that the policies have let pass.

        Raises:
            AlreadyExistsError: its tenant has one of this name: it would be lost by the other.
        """
        identity = inbound.identity
        if self.memory.holds(identity.tenant, identity.run_id):
            raise AlreadyExistsError(
                f"there is a run {identity.run_id} already; look at it at "
                f"/v1/runs/{identity.run_id}, or send another x-sixhop-run-id, or none",
                cause="run_id",
                details={"runId": identity.run_id},
            )
        try:
            record = self._record(inbound)
            text = question.text
            record.agent = agent[:200]
            record.question = text if self._settings.keep_prompts else None
            record.question_char_count = len(text)
            record.source_count = len(question.sources)
            record.budget_ms = round(inbound.time_remaining_on_arrival_s * 1000)
            run = Run(record, inbound, self._clock)
            inbound.kept = run
            self.memory.begin(run)
            if self._share is not None:
                self._share(run)
        except Exception as error:  # a defect here must not end the run
            self._give_up(inbound, error)

    def after(self, inbound: Inbound, error: BaseException | None) -> None:
        """Take how a call has ended."""
        if inbound.method not in RUNS:
            return
        try:
            run = inbound.kept
            if isinstance(run, Run):
                told = None
                if isinstance(error, SixhopError):
                    told = error_json(error, inbound, self._clock.now())
                run.end(_status(run.record, error), told)
                self.memory.end(run)
                if self._share is not None:
                    self._share(run)
            elif isinstance(error, SixhopError) and not isinstance(error, UnauthenticatedError):
                self._refused(inbound, error)
        except Exception as defect:  # a defect here must not end the run
            self._give_up(inbound, defect)

    async def tidy_forever(self) -> None:
        """Let go of what is too old, for ever."""
        while True:
            await self._clock.sleep(TIDY_INTERVAL_S)
            try:
                self.memory.tidy()
            except Exception as error:  # the next round may go well, and bounds hold without it
                tell_defect(error)

    def _refused(self, inbound: Inbound, error: SixhopError) -> None:
        # No policy let it pass, so nobody has looked at its question. Who is not known has no runs.
        run = Run(self._record(inbound), inbound, self._clock)
        run.end(Status.FAILED, error_json(error, inbound, self._clock.now()))
        self.memory.refuse(run)

    def _record(self, inbound: Inbound) -> RunRecord:
        identity = inbound.identity
        return RunRecord(
            run_id=identity.run_id,
            request_id=identity.request_id,
            tenant=identity.tenant,
            gateway=self._pod,
            method=inbound.method,
            started_ms=int(self._clock.utc().timestamp() * 1000),
        )

    def _give_up(self, inbound: Inbound, error: Exception) -> None:
        run, inbound.kept = inbound.kept, None
        if isinstance(run, Run):
            self.memory.give_up(run, error)
        else:
            tell_defect(error)


def _status(record: RunRecord, error: BaseException | None) -> Status:
    if isinstance(error, RunCancelledError):
        return Status.CANCELLED
    if isinstance(error, SixhopError):
        return Status.FAILED
    # Who goes away after the last event has had the whole answer.
    if record.status is not Status.RUNNING:
        return record.status
    return Status.CANCELLED if error is not None else Status.OK
