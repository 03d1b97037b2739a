"""Makes runs for the tests of what is kept of them."""

from collections.abc import Sequence
from typing import Any

from gateway.config import RunsSettings
from gateway.runs.book import RunBook
from gateway.runs.event_json import TEXT, UNKNOWN
from gateway.runs.run import Run
from services.runtime.call import AttemptReport, Identity, Inbound
from services.runtime.clock import ManualClock
from sixhop.type.v1 import artifact_pb2, run_pb2

REPORT = AttemptReport("routing", "Route", 1, 1, 0.001, 9.0, 0.5, 9.4, "OK")


def text(words: str) -> run_pb2.RunEvent:
    """Return a piece of text."""
    return run_pb2.RunEvent(text_delta=run_pb2.TextDelta(text=words))


def thinking(state: str = "silent") -> run_pb2.RunEvent:
    """Return a heartbeat."""
    return run_pb2.RunEvent(thinking=run_pb2.Thinking(state=state))


def restarted() -> run_pb2.RunEvent:
    """Return what voids the text so far."""
    return run_pb2.RunEvent(restarted=run_pb2.Restarted(reason="cut"))


def finished(*files: artifact_pb2.Artifact, **more: Any) -> run_pb2.RunEvent:
    """Return the last event of a run that ended well."""
    return run_pb2.RunEvent(
        finished=run_pb2.RunFinished(agent="chat", model="m", artifacts=files, **more)
    )


def file(name: str = "report.pdf", size: int = 10) -> artifact_pb2.Artifact:
    """Return a file of a size."""
    return artifact_pb2.Artifact(name=name, media_type="application/pdf", content=b"x" * size)


class Gateway:
    """Is what is around the book of runs in a gateway."""

    def __init__(self, clock: ManualClock, **settings: Any) -> None:
        """Take the clock, and settings of what is kept."""
        self.clock = clock
        self.book = RunBook("gateway-1", RunsSettings(**settings), clock)
        self.memory = self.book.memory

    def arrive(self, run_id: str = "r1", tenant: str = "", method: str = "Run") -> Inbound:
        """Begin a call that no policy has let pass yet."""
        now = self.clock.now()
        identity = Identity(run_id=run_id, request_id=f"q-{run_id}", tenant=tenant)
        return Inbound("gateway", method, True, now, now + 10.0, identity)

    def begin(self, run_id: str = "r1", tenant: str = "", question: str = "Why?") -> Inbound:
        """Begin a run."""
        inbound = self.arrive(run_id, tenant)
        self.book.begin(inbound, run_pb2.Question(text=question), "chat")
        return inbound

    def tell(self, inbound: Inbound, event: run_pb2.RunEvent) -> None:
        """Take an event of a run."""
        kind = event.WhichOneof("event") or UNKNOWN
        if kind == TEXT:
            self.memory.take_text(kept(inbound), event.text_delta.text)
        else:
            self.memory.take(kept(inbound), kind, event)

    def ended(
        self,
        run_id: str = "r1",
        *events: run_pb2.RunEvent,
        tenant: str = "",
        question: str = "Why?",
    ) -> Run:
        """Lead a run with these events to a good end."""
        inbound = self.begin(run_id, tenant, question)
        for event in events or (text("Because."), finished()):
            self.tell(inbound, event)
        inbound.reports.append(REPORT)
        self.book.after(inbound, None)
        return kept(inbound)

    def ids(self) -> set[str]:
        """Return the names of what is kept."""
        return {run.record.run_id for run in self.memory}


def kept(inbound: Inbound) -> Run:
    """Return what is kept of a call."""
    assert isinstance(inbound.kept, Run)
    return inbound.kept


def words_of(run: Run) -> Sequence[Any]:
    """Return the events of a run, each as its number and its text."""
    return [(told.sequence, told.data.get("text")) for told in run.log.told()]
