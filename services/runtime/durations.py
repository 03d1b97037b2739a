"""Converts lengths between seconds and protobuf's Duration."""

from google.protobuf.duration_pb2 import Duration

NANOS = 1_000_000_000


def set_duration(duration: Duration, length_s: float) -> None:
    """Make a Duration this long; both parts carry the sign, as protobuf wants."""
    nanos = round(length_s * NANOS)
    sign = -1 if nanos < 0 else 1
    duration.seconds = sign * (sign * nanos // NANOS)
    duration.nanos = sign * (sign * nanos % NANOS)


def to_duration(length_s: float) -> Duration:
    """Return the length as a Duration."""
    duration = Duration()
    set_duration(duration, length_s)
    return duration


def to_seconds(duration: Duration) -> float:
    """Return the Duration as seconds."""
    return duration.seconds + duration.nanos / NANOS
