"""Holds every stream of the protos to this: what says only that somebody waits is a heartbeat."""

import pytest
from google.protobuf.message import Message

from services.runtime.heartbeat_events import is_heartbeat
from sixhop.domain.v1 import domain_pb2
from sixhop.gateway.v1 import gateway_pb2
from sixhop.model.v1 import model_pb2
from sixhop.routing.v1 import routing_pb2
from sixhop.runtime.v1 import runtime_pb2
from sixhop.type.v1 import run_pb2
from tests.requirements import requirement

THINKING = run_pb2.RunEvent(thinking=run_pb2.Thinking(state="silent"))
TEXT = run_pb2.RunEvent(text_delta=run_pb2.TextDelta(text="x"))


@requirement("heartbeat:is-no-answer")
@pytest.mark.parametrize(
    ("event", "heartbeat"),
    [
        (model_pb2.GenerateResponse(thinking=model_pb2.GenerationWait(state="queued")), True),
        (model_pb2.GenerateResponse(text_delta=model_pb2.GeneratedText(text="x")), False),
        (model_pb2.GenerateResponse(), False),
        (domain_pb2.RunAgentResponse(event=THINKING), True),
        (domain_pb2.RunAgentResponse(event=TEXT), False),
        (routing_pb2.RouteResponse(event=THINKING), True),
        (routing_pb2.RouteResponse(event=TEXT), False),
        (gateway_pb2.RunResponse(event=THINKING), True),
        (gateway_pb2.RunResponse(event=TEXT), False),
        (gateway_pb2.RunResponse(), False),
        (runtime_pb2.WatchSnapshotsResponse(), False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Message) else str(value),
)
def test_a_heartbeat_is_known_on_every_stream(event: Message, heartbeat: bool) -> None:
    assert is_heartbeat(event) is heartbeat
