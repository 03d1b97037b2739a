"""Says which runs somebody looks for."""

from collections.abc import Iterable
from dataclasses import dataclass

from gateway.runs.run import Run


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


def newest_first(runs: Iterable[Run]) -> list[Run]:
    """Return runs by when they came, the newest first."""
    return sorted(runs, key=lambda run: (run.record.started_ms, run.record.run_id), reverse=True)
