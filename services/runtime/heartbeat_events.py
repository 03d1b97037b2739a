"""Knows the events of streams that say only that their sender lives and waits."""

from google.protobuf.message import Message

from sixhop.type.v1.run_pb2 import RunEvent

_KIND = "thinking"


def is_heartbeat(event: Message) -> bool:
    """Tell whether an event of a stream says only that its sender lives and waits."""
    run_event = getattr(event, "event", None)
    if isinstance(run_event, RunEvent):
        return run_event.WhichOneof("event") == _KIND
    oneofs = event.DESCRIPTOR.oneofs_by_name
    return "event" in oneofs and event.WhichOneof("event") == _KIND
