"""Holds the JSON of events to their proto."""

from typing import Any

import orjson
import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message

from gateway.runs.event_json import event_json, without_words
from sixhop.type.v1 import run_pb2
from tests.requirements import requirement

KINDS = [field.name for field in run_pb2.RunEvent.DESCRIPTOR.oneofs_by_name["event"].fields]
OWN_NAMES = {"sequence", "at_ms", "kind"}
"""What stands beside the fields of an event."""


def filled(kind: str) -> run_pb2.RunEvent:
    """Return an event of a kind with something in every field."""
    event = run_pb2.RunEvent()
    _fill(getattr(event, kind))
    return event


def _fill(message: Message) -> None:
    if isinstance(message, Duration):
        message.seconds = 2
        return
    for field in message.DESCRIPTOR.fields:
        if field.message_type is not None:
            inner = getattr(message, field.name)
            _fill(inner.add() if field.is_repeated else inner)
        elif field.is_repeated:
            getattr(message, field.name).append(_sample(field))
        else:
            setattr(message, field.name, _sample(field))


def _sample(field: Any) -> Any:
    if field.enum_type is not None:
        return 2
    samples: dict[int, Any] = {
        FieldDescriptor.CPPTYPE_STRING: b"xyz" if field.type == field.TYPE_BYTES else "xyz",
        FieldDescriptor.CPPTYPE_BOOL: True,
        FieldDescriptor.CPPTYPE_DOUBLE: 0.5,
    }
    return samples.get(field.cpp_type, 3)


def _written(name: str, field: Any) -> str:
    """Return the name that a field has as JSON: a length tells its unit, bytes their count."""
    if field.message_type is not None and field.message_type.full_name.endswith(".Duration"):
        return name.removesuffix("_duration") + "_ms"
    if field.type == field.TYPE_BYTES:
        return "byte_count"
    return name


@requirement("runs:events-are-the-proto")
@pytest.mark.parametrize("kind", KINDS)
def test_every_field_of_an_event_is_written_and_says_something(kind: str) -> None:
    event = filled(kind)

    written = event_json(kind, event)

    fields = getattr(event, kind).DESCRIPTOR.fields
    assert set(written) == {_written(field.name, field) for field in fields}
    assert all(written.values())
    assert not OWN_NAMES & set(written)
    assert orjson.loads(orjson.dumps(written)) == written


@requirement("runs:events-are-the-proto")
def test_messages_in_an_event_are_written_whole() -> None:
    written = event_json("finished", filled("finished"))

    assert written["usage"] == {
        "input_token_count": 3,
        "output_token_count": 3,
        "estimated": True,
    }
    assert written["artifacts"] == [{"name": "xyz", "media_type": "xyz", "byte_count": 3}]


def test_an_event_of_a_later_release_says_nothing() -> None:
    assert event_json("unknown", run_pb2.RunEvent()) == {}


@requirement("runs:words-go")
def test_what_a_model_wrote_and_what_was_looked_up_can_be_left_out() -> None:
    call = without_words("tool_call", event_json("tool_call", filled("tool_call")))
    last = without_words("finished", event_json("finished", filled("finished")))

    assert call == {"id": "xyz", "name": "xyz", "arguments": None}
    assert (last["sources"], last["source_count"]) == (None, 1)
