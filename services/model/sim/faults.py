"""Declares every fault that the simulator can show, with its knobs."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args
from urllib.parse import parse_qsl

from services.runtime.sections import nearest

Ending = Literal["complete", "stall", "close", "reset", "done", "event", "flood"]
Stage = Literal["request", "headers", "token", "event", "chunk", "finish", "end"]
FOREVER_S = 3600.0
"""How long what holds a connection holds it; whoever still waits then has no limit."""


class UnknownFaultError(Exception):
    """Refuses the text of a fault; says what is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Says how one answer differs from a good one. Lengths are seconds, counts are of tokens."""

    status: int = 200
    """Another than 200 refuses the request with `message`, `type` and `code`."""
    message: str = ""
    """The text of a refusal or of an error inside a stream."""
    type: str = ""
    """The refusal's `error.type`; empty takes the one that belongs to the status."""
    code: str = ""
    """The refusal's `error.code`; empty is null."""
    retry_after_s: float = -1.0
    """A refusal's Retry-After; negative sends none."""
    retry_after_date: bool = False
    """Write Retry-After as an HTTP date instead of seconds."""
    location: str = ""
    """Where a redirect leads."""
    body: str = ""
    """Is sent instead of any answer, as it is."""
    content_type: str = ""
    """The answer's Content-Type; empty takes the right one."""
    ending: Ending = "complete"
    """How the answer ends: `complete`, by a `stall`, by FIN (`close`), by RST (`reset`), by
    `[DONE]` alone (`done`), by an `event`, or in a `flood` of comments."""
    stage: Stage = "token"
    """Where that is: `request` is before the headers, `headers` after them, `token` between two
    events, `event` inside of one, `chunk` inside of an HTTP chunk, `finish` after the
    finish_reason, `end` before the HTTP terminator."""
    clean: bool = False
    """End the body as HTTP should instead of by FIN, so that only the missing finish tells of the
    cut."""
    at_token: int = 3
    """How many tokens are written before the fault."""
    after_s: float = -1.0
    """Instead of at a token, the fault comes so long after the request; negative does not."""
    event: str = ""
    """What is sent as the data of the last event, by the ending `event`."""
    event_kind: str = ""
    """The `event:` field of that event."""
    hold: bool = False
    """Keep the connection open in silence after that event, instead of ending the stream."""
    hold_s: float = FOREVER_S
    """How long a silence lasts before the connection is closed."""
    finish_reason: str = ""
    """What is told instead of the true finish_reason."""
    finish: bool = True
    """Send a finish_reason at all."""
    finish_count: int = 1
    """How many times the finish is sent."""
    done: bool = True
    """Send `[DONE]`."""
    done_count: int = 1
    """How many times `[DONE]` is sent."""
    usage: bool = True
    """Send the usage that was asked for."""
    headers_after_s: float = 0.0
    """How long the answer waits before its first byte."""
    head_pause_s: float = 0.0
    """The pause after each byte of the head."""
    first_token_after_s: float = -1.0
    """The time to the first token after the headers; negative draws it."""
    token_interval_s: float = -1.0
    """The time between two tokens; negative draws it."""
    slowdown: float = 1.0
    """Makes every drawn time longer by this factor."""
    keep_alive_s: float = 0.0
    """How often a comment is sent in every wait; 0 sends none."""
    write_bytes: int = 0
    """How many bytes are written at a time; 0 writes whole events."""
    write_pause_s: float = 0.0
    """The pause between two such writes."""
    split_utf8: bool = False
    """Cut every write inside of each character that has more than one byte."""
    line_ending: Literal["lf", "crlf", "cr", "mix"] = "lf"
    """What ends the lines of events."""
    data_space: bool = True
    """Write `data: `; without the space it is `data:`."""
    multiline: bool = False
    """Spread the data of each event over several `data:` lines."""
    bom: bool = False
    """Begin the stream with a byte order mark."""
    extra_events: bool = False
    """Put id, retry, ping and unknown lines, and empty events, between the others."""
    chunked: bool = True
    """Frame the body in HTTP chunks; without, only FIN ends it."""
    text: str = ""
    """The answer, word by word; empty lets the seed write one."""
    tokens: int = 0
    """How many tokens the answer has; 0 takes the setting, or the text once."""
    reasoning: int = -1
    """How many tokens of reasoning come first; negative takes the setting."""
    bad_arguments: bool = False
    """Cut the arguments of a tool call, so that they are no JSON."""
    prefill: bool = True
    """Continue a prompt that ends with the assistant's words; without, refuse it by 400."""
    window: int = 0
    """The context window in tokens; 0 takes the setting."""
    notice_s: float = -1.0
    """How long work goes on after the client left; negative takes the setting."""
    refuse_s: float = 0.0
    """Close the listener for so long, once this request has come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """Says which requests a fault meets. All of it must hold."""

    model: str = ""
    """A pattern of the model's name, such as `deepseek-*`; empty means any."""
    tenant: str = ""
    """A pattern of the tenant: the field `user`, or the header `x-sim-tenant`; empty means any."""
    stream: str = ""
    """`yes` for streams only, `no` for the others only; empty means both."""
    p: float = 1.0
    """The probability, drawn by the seed and the request."""
    skip: int = 0
    """How many matching requests pass first."""
    times: int = 0
    """How many matching requests are met after those; 0 means all."""
    up_s: float = 0.0
    """With `down_s`: how long the rule sleeps in each turn, which begins with that."""
    down_s: float = 0.0
    """How long it is awake after that; flapping is a sleep and a wake in turn."""
    burst_enter: float = 0.0
    """Above 0: requests are met in bursts only; the probability that one begins at a request."""
    burst_leave: float = 0.3
    """The probability that a burst ends at a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Is a fault and whom it meets."""

    name: str
    """As it was written."""
    fault: Fault = field(default_factory=Fault)
    when: When = field(default_factory=When)


@dataclass(frozen=True, slots=True)
class Entry:
    """Is one line of the table of faults."""

    about: str
    knobs: Mapping[str, Any] = field(default_factory=dict)


WRITTEN = ("done", "event", "flood")
"""Endings that are events, and cannot come inside of one."""
FAULT_KINDS = {each.name: type(getattr(Fault(), each.name)) for each in fields(Fault)}
WHEN_KINDS = {each.name: type(getattr(When(), each.name)) for each in fields(When)}
KNOBS = (*FAULT_KINDS, *WHEN_KINDS)
CHOICES = {
    "ending": get_args(Ending),
    "stage": get_args(Stage),
    "line_ending": ("lf", "crlf", "cr", "mix"),
    "stream": ("", "yes", "no"),
}


def read_rule(text: str | Mapping[str, Any], table: Mapping[str, Entry]) -> Rule:
    """Return the rule that a text such as `crlf+reset?at_token=5&p=0.1` or a table says.

    A table has `fault`, the names, and the knobs beside it.

    Raises:
        UnknownFaultError: a name or a knob is unknown, or a value does not fit.
    """
    if isinstance(text, str):
        name = text
        base, _, query = text.partition("?")
        given: Mapping[str, Any] = dict(parse_qsl(query, keep_blank_values=True))
    else:
        given = dict(text)
        name = base = str(given.pop("fault", "none"))
    knobs: dict[str, Any] = {}
    for part in base.split("+"):
        if part not in table:
            raise UnknownFaultError(f"{part!r} is no fault{nearest(part, table)}")
        knobs |= table[part].knobs
    knobs |= {key: _converted(key, value) for key, value in given.items()}
    fault = replace(Fault(), **{k: v for k, v in knobs.items() if k in FAULT_KINDS})
    if fault.ending in WRITTEN and fault.stage in ("request", "event", "chunk"):
        raise UnknownFaultError(
            f"{name!r}: what is written as an event cannot come at stage={fault.stage}; "
            "write headers, token, finish or end"
        )
    return Rule(
        name=name,
        fault=fault,
        when=replace(When(), **{k: v for k, v in knobs.items() if k in WHEN_KINDS}),
    )


def _converted(key: str, value: Any) -> Any:
    kind = FAULT_KINDS.get(key) or WHEN_KINDS.get(key)
    if kind is None:
        raise UnknownFaultError(f"{key!r} is no knob of a fault{nearest(key, KNOBS)}")
    if kind is bool and isinstance(value, str):
        return value.lower() in ("1", "true", "yes", "on")
    try:
        found = kind(value)
    except (TypeError, ValueError):
        raise UnknownFaultError(f"{key}={value!r}: write a {kind.__name__}") from None
    if key in CHOICES and found not in CHOICES[key]:
        raise UnknownFaultError(f"{key}={value!r}: write one of {', '.join(CHOICES[key])}")
    return found
