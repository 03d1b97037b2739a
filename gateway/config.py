"""Defines the settings of the gateway."""

from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr

from gateway.access.jwt_settings import JwtSettings
from services.runtime.config import HopSettings, Section
from services.runtime.redis_url import RedisUrl
from services.runtime.topology import DEFAULT_PORTS, GATEWAY

HTTP_PORT_DISTANCE = 80
"""How far the HTTP door's port is from the hop's own, when both are the usual ones: 7480."""


class RunsSettings(Section):
    """Says what is kept of recent runs, how much of it, and for how long."""

    keep_prompts: bool = False
    """Whether the words of a run are kept as long as its record: the question, the answer, tools'
    arguments and the sources. Else only the length of a question is kept, and an answer's words
    until `resume_s` after its end, because its client may come back for it."""
    max_count: int = Field(default=1_000, ge=1, le=100_000)
    """The most runs that are kept; the oldest that has ended goes first."""
    max_refused_count: int = Field(default=100, ge=1, le=100_000)
    """The most of those that were refused before they began, kept apart: a flood of refusals must
    not drive out what was answered."""
    max_age_s: float = Field(default=3_600.0, gt=0, le=30 * 86_400)
    """How long a run is kept after its end, seconds; who looks for it comes within the hour."""
    resume_s: float = Field(default=300.0, gt=0, le=86_400)
    """How long after its end a client may come back for the words of its run, seconds."""
    max_run_bytes: int = Field(default=9 * 1024 * 1024, ge=1_000)
    """The most that is kept of one run, with its files; one file has 8 MiB at most. A file that
    does not fit is not kept, and of events the oldest go."""
    max_bytes: int = Field(default=64 * 1024 * 1024, ge=10_000)
    """The most that is kept of all runs together, about; the gateway itself takes as much."""
    max_started_count: int = Field(default=64, ge=1, le=10_000)
    """The most runs that go on by themselves at a time, after `POST /v1/runs`; of one tenant with
    a name a quarter of them."""
    max_reader_count: int = Field(default=256, ge=1, le=100_000)
    """The most streams of `/v1/runs/{id}/events` at a time; each holds a connection. One tenant
    with a name reads a quarter of them."""
    redis_url: RedisUrl = SecretStr("")
    """Where gateways share what they keep, such as `redis://host:6379/0`; empty keeps it in each
    one's memory. A secret, because it may hold a password."""
    redis_prefix: str = Field(default="sixhop:runs", min_length=1, max_length=100)
    """What all keys there begin with; suites that use one Redis need one each."""


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
    runs: RunsSettings = RunsSettings()
    """The recent runs, which `/v1/runs` shows."""
    open: bool = False
    """Whether callers who show nothing come in though others than this machine can call: only where
    something before the gateway asks who they are. Whoever shows a key must have a right one."""
    keys_file: Path | None = None
    """Where API keys are kept, as digests; unset takes `.sixhop/keys.json` beside the
    configuration. Once it is there, or named here, callers need a key."""
    jwt: JwtSettings = Field(default_factory=JwtSettings)
    """Says which tokens of others let callers in, beside keys."""
    quota_redis_url: RedisUrl = SecretStr("")
    """Where gateways count together what tenants use, such as `redis://host:6379/0`; empty lets
    each count for itself. A secret, because it may hold a password."""
    quota_redis_prefix: str = Field(default="sixhop:quota", min_length=1, max_length=100)
    """What all keys there begin with; suites that use one Redis need one each."""

    def http_address(self, port: int) -> tuple[str, int]:
        """Return where HTTP is served; port 0 takes a free one.

        Args:
            port: where the gRPC door is.
        """
        usual = DEFAULT_PORTS[GATEWAY]
        unset = port + HTTP_PORT_DISTANCE if port == usual else 0
        return self.http_host or self.host, unset if self.http_port is None else self.http_port
