"""Turns what a process tells into a plain document, so that programs are shown all of it."""

import re
from collections.abc import Sequence
from datetime import UTC
from typing import Any, cast

from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from gateway.cli.console import one_line
from services.runtime.durations import to_seconds

DIGITS = 6
"""Microseconds are the least that matters."""
_LENGTH = re.compile(r"_(duration|latency)$")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_KEPT_AS_IS = frozenset({"Criticality"})
"""Enums whose values have their names elsewhere, too: in metadata and settings."""


def plain(message: Message) -> dict[str, Any]:
    """Return every field of a message by its name: what is unset is None.

    Lengths are seconds and end in `_s`, instants are ISO 8601 in UTC, and the values of an enum are
    its names in small letters, without what they all begin with.
    """
    # The stubs know two classes of descriptors, which are one.
    fields = cast(Sequence[FieldDescriptor], message.DESCRIPTOR.fields)
    return {_name(field): _field(message, field) for field in fields}


def _name(field: FieldDescriptor) -> str:
    is_length = field.message_type is not None and field.message_type.name == "Duration"
    return _LENGTH.sub("", field.name) + "_s" if is_length else field.name


def _field(message: Message, field: FieldDescriptor) -> Any:
    value = getattr(message, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        of = field.message_type.fields_by_name["value"]
        return {one_line(str(key)): _value(each, of) for key, each in sorted(value.items())}
    if field.is_repeated:
        return [_value(each, field) for each in value]
    if field.has_presence and not message.HasField(field.name):
        return None
    return _value(value, field)


def _value(value: Any, field: FieldDescriptor) -> Any:
    if isinstance(value, Duration):
        return round(to_seconds(value), DIGITS)
    if isinstance(value, Timestamp):
        return value.ToDatetime(UTC).isoformat(timespec="milliseconds")
    if isinstance(value, Message):
        return plain(value)
    if field.enum_type is not None:
        return _enum(value, field.enum_type)
    if isinstance(value, float):
        return round(value, DIGITS)
    return one_line(value) if isinstance(value, str) else value


def _enum(number: int, kind: EnumDescriptor) -> str | None:
    known = kind.values_by_number.get(number)
    if known is None:
        return "unknown"
    if number == 0:
        return None
    prefix = _HUMP.sub("_", kind.name).upper() + "_"
    name: str = known.name.removeprefix(prefix)
    return name if kind.name in _KEPT_AS_IS else name.lower()
