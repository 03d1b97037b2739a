"""Finds the runs that a tenant may see."""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.runs.memory import RunMemory, newest_first
from gateway.runs.run import Run
from services.runtime.errors import NotFoundError


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Says which runs are looked for."""

    tenant: str
    status: str = ""
    """Empty takes all."""
    agent: str = ""
    """Empty takes all."""
    before: tuple[int, str] | None = None
    """The start and the name of a run: only older ones are wanted. None begins with the newest."""
    limit: int = 50

    def takes(self, run: Run) -> bool:
        """Tell whether a run is one of these."""
        record = run.record
        return (
            record.tenant == self.tenant
            and (not self.status or record.status == self.status)
            and (not self.agent or record.agent == self.agent)
            and (self.before is None or (record.started_ms, record.run_id) < self.before)
        )


class RunReader:
    """Shows runs to their own tenants."""

    def __init__(self, memory: RunMemory) -> None:
        """Take the runs of this process."""
        self._memory = memory

    async def find(self, tenant: str, run_id: str) -> Run:
        """Return a run of a tenant.

        Raises:
            NotFoundError: it has none of that name, or it is not kept any more.
        """
        run = self._memory.find(tenant, run_id)
        if run is None:
            raise NotFoundError("run", run_id)
        return run

    async def list(self, wanted: Wanted) -> Sequence[Run]:
        """Return a tenant's runs, the newest first; one more than wanted says that more follow."""
        found = newest_first(run for run in self._memory if wanted.takes(run))
        return found[: wanted.limit + 1]

    async def file(self, run: Run, name: str) -> bytes:
        """Return the bytes of a file of a run.

        Raises:
            NotFoundError: it has none of that name, or it is not kept.
        """
        content = run.files.get(name)
        if content is None:
            raise NotFoundError("file of the run", name, list(run.files))
        return content
