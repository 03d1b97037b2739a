"""Defines the settings of the gateway."""

from typing import Literal

from pydantic import Field

from services.runtime.config import HopSettings


class GatewaySettings(HopSettings):
    """Bounds what clients may send."""

    max_question_chars: int = Field(default=8_000, ge=1)
    """The longest question, in characters; longer text belongs into a file."""
    max_source_bytes: int = Field(default=16 * 1024 * 1024, ge=1)
    """The largest data file of a question; a larger one belongs into the tool's data folder."""
    max_source_count: int = Field(default=4, ge=0)
    """The most data files of a question; so many can be compared, more are a database."""
    max_history_count: int = Field(default=400, ge=0, le=900)
    """The most messages of a history; the model hop takes a thousand, with rules and question."""
    max_history_bytes: int = Field(default=768 * 1024, ge=0)
    """The largest history, with all that belongs to its messages; the model hop takes a prompt of
    a megabyte, rules and question included."""
    max_tools_bytes: int = Field(default=128 * 1024, ge=0)
    """The largest tools of a question, with their descriptions and schemas: together with the
    largest history they still fit what the model hop takes."""
    max_format_bytes: int = Field(default=32 * 1024, ge=0)
    """The largest response format of a question, with its schema."""
    http_host: str = ""
    """The address of the HTTP door; empty takes the one of the gRPC door."""
    http_port: int | None = Field(default=None, ge=0, le=65535)
    """The TCP port of the HTTP door; unset is eighty above the hop's own port where that is the
    usual one (7480), and a free one elsewhere, which the log tells. 0 takes a free one."""
    http_idle_limit_s: float = Field(default=30.0, ge=1, le=3600)
    """How long the most impatient proxy before the door keeps a silent connection, seconds: a
    stream with nothing to say sends a comment after a third of it. nginx allows 60."""
    http_delivery: Literal["buffered", "live"] = "live"
    """How streams over HTTP give text when the request does not say. `live`: as it is written, and
    a model that fails in the middle ends the stream with an error unless another can go on.
    `buffered`: once it is complete, so that another model can begin anew unseen."""
    max_body_bytes: int = Field(default=24 * 1024 * 1024, ge=1)
    """The largest body of an HTTP request; files travel in it as base64."""
    http_max_connections: int = Field(default=4096, ge=1)
    """The most connections over HTTP at a time; others are answered 503. Each stream is one."""
    http_body_timeout_s: float = Field(default=30.0, gt=0, le=600)
    """How long a client may take to send the body of a request, seconds."""
    http_head_timeout_s: float = Field(default=10.0, gt=0, le=600)
    """How long a client may take to send a request's headers, from its connection on, seconds."""
    http_unread_timeout_s: float = Field(default=10.0, gt=0, le=600)
    """How long a client may leave a stream unread that cannot be written on, seconds."""
