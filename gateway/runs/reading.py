"""Finds the runs that a tenant may see, here and at other gateways."""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.runs.memory import RunMemory
from gateway.runs.run import Run
from gateway.runs.sharing import SharedRuns, StoreAwayError
from gateway.runs.wanted import Wanted, newest_first
from services.runtime.clock import Clock
from services.runtime.errors import NotFoundError, NotServedHereError, SelfUnavailableError

LOOK_S = 0.25
"""How often a run of another gateway is looked at by who waits for its end."""
GRACE_S = 10.0
"""How long after its deadline it is still looked for when what gateways share cannot be asked."""


@dataclass(frozen=True, slots=True)
class Found:
    """Is what was found of many runs."""

    runs: Sequence[Run]
    """The newest first; one more than wanted says that more follow."""
    partial: bool
    """Whether other gateways may have more: what they share could not be asked."""


class RunReader:
    """Shows runs to their own tenants."""

    def __init__(self, memory: RunMemory, clock: Clock, shared: SharedRuns | None = None) -> None:
        """Take the runs of this process, the clock, and those that gateways share, if they do."""
        self._memory = memory
        self._clock = clock
        self._shared = shared

    async def find(self, tenant: str, run_id: str) -> Run:
        """Return a run of a tenant, wherever it is kept.

        Raises:
            NotFoundError: it has none of that name, or it is not kept any more.
            SelfUnavailableError: it is not here, and what gateways share cannot be asked.
        """
        run = self._memory.find(tenant, run_id)
        if run is None and self._shared is not None:
            try:
                run = await self._shared.find(tenant, run_id)
            except StoreAwayError:
                raise _away() from None
        if run is None:
            raise NotFoundError("run", run_id)
        return run

    async def own(self, tenant: str, run_id: str) -> Run:
        """Return a run that this gateway can end, or one that has ended.

        Raises:
            NotServedHereError: another gateway runs it; and as `find` does.
        """
        run = await self.find(tenant, run_id)
        if run.elsewhere and run.live:
            raise NotServedHereError(
                f"the run is at the gateway {run.record.gateway}; end it there, or end its call",
                cause="elsewhere",
                details={"gateway": run.record.gateway},
            )
        return run

    async def list(self, wanted: Wanted) -> Found:
        """Return a tenant's runs, wherever they are kept."""
        found = {run.key: run for run in self._memory if wanted.takes(run)}
        partial = False
        if self._shared is not None:
            try:
                for run in await self._shared.list(wanted):
                    # This gateway knows best about its own.
                    if self._memory.find(*run.key) is None:
                        found[run.key] = run
            except StoreAwayError:
                partial = True
        return Found(newest_first(found.values())[: wanted.limit + 1], partial)

    async def file(self, run: Run, name: str) -> bytes:
        """Return the bytes of a file of a run.

        Raises:
            NotFoundError: it has none of that name, or it is not kept.
            SelfUnavailableError: it is not here, and what gateways share cannot be asked.
        """
        content = run.files.get(name)
        if content is None and run.elsewhere and self._shared is not None:
            try:
                content = await self._shared.file(*run.key, name)
            except StoreAwayError:
                raise _away() from None
        if content is None:
            raise NotFoundError("file of the run", name, list(run.files))
        return content

    async def ended(self, run: Run) -> Run | None:
        """Return a run of another gateway once it has ended; None when it is not kept any more.

        What another gateway's run says meanwhile stays there. Bounded: a run that tells no more is
        not kept for longer than its deadline.

        Raises:
            SelfUnavailableError: its deadline has passed, and what gateways share cannot be asked.
        """
        record = run.record
        deadline_s = (record.started_ms + (record.budget_ms or 0)) / 1000
        left_s = deadline_s - self._clock.utc().timestamp()
        until = self._clock.now() + max(0.0, left_s) + GRACE_S
        while True:
            await self._clock.sleep(LOOK_S)
            try:
                now = await self.find(*run.key)
            except NotFoundError:
                return None
            except SelfUnavailableError:
                if self._clock.now() >= until:
                    raise
                continue
            if not now.live:
                return now


def _away() -> SelfUnavailableError:
    return SelfUnavailableError(
        "the run is not here, and what gateways share cannot be read now; try again in a moment",
        cause="store_away",
        retry_after_s=1.0,
    )
