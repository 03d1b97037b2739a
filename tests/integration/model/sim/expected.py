"""Says how every fault of the simulator must look on the wire."""

from collections.abc import Callable
from dataclasses import dataclass

from services.model.sim.vocabulary import SEPARATORS
from tests.integration.model.sim.raw import ANSWER, QUIET_S, Got


def complete(got: Got) -> bool:
    return (
        got.status == 200
        and got.whole
        and got.text == ANSWER
        and got.finishes == ["stop"]
        and got.done_count == 1
        and got.datas[-2]["usage"]["completion_tokens"] == 5
    )


def cut(got: Got, text: str = "alpha beta gamma") -> bool:
    """Return whether it is a stream without its end."""
    return got.status == 200 and got.text == text and not got.finishes and not got.done_count


def refused(status: int, retry_after: bool = False) -> "Expected":
    def holds(got: Got) -> bool:
        return (
            got.status == status
            and got.json["error"]["message"] is not None
            and ("retry-after" in got.headers) == retry_after
        )

    return Expected("open", holds, same_in_one=True)


def last_event(data: object) -> "Expected":
    return Expected("open", lambda got: got.whole and cut_before(got) and got.datas[-1] == data)


def cut_before(got: Got) -> bool:
    return got.text == "alpha beta gamma" and not got.finishes


@dataclass(frozen=True)
class Expected:
    """Says how a stream must look and end."""

    ended: str
    holds: Callable[[Got], bool]
    changes: str = ""
    """Knobs that make the fault fast enough for a test."""
    same_in_one: bool = False
    """Whether an answer in one must look the same."""


ERROR = {"message": "the engine died", "type": "server_error", "code": None}
MESSAGE = {"message": "the engine died"}


def mid(got: Got) -> bool:
    """Return whether half an event came after three tokens."""
    return cut(got) and got.body.rpartition(b"\n\n")[2].startswith(b"data: {")


def nothing(got: Got) -> bool:
    return got.raw == b""


def headers_alone(got: Got) -> bool:
    return got.status == 200 and got.body == b""


def finished(got: Got) -> bool:
    return got.text == ANSWER and got.finishes == ["stop"] and not got.done_count


def done(got: Got) -> bool:
    return got.text == ANSWER and got.done_count == 1 and not got.whole


def ends(sign: str, ended: str) -> dict[str, Expected]:
    return {
        sign: Expected(ended, cut),
        f"{sign}-before-headers": Expected(ended, nothing, same_in_one=True),
        f"{sign}-after-headers": Expected(ended, headers_alone, same_in_one=True),
        f"{sign}-mid-event": Expected(ended, mid),
        f"{sign}-mid-chunk": Expected(ended, mid),
        f"{sign}-after-finish": Expected(ended, finished),
        f"{sign}-before-terminator": Expected(ended, done),
    }


def framed(sign: bytes) -> Expected:
    return Expected("open", lambda got: complete(got) and sign in got.body)


EXPECTED: dict[str, Expected] = {
    "none": Expected("open", complete),
    "at-once": Expected("open", complete),
    "reasoning": Expected(
        "open",
        lambda got: (
            got.text == ANSWER
            and sum("reasoning_content" in choice["delta"] for choice in got.choices) == 5
        ),
    ),
    **{
        status: refused(int(status))
        for status in "400 401 402 403 404 408 409 413 422 429 500 502 503 504 529".split()
    },
    "retry-after": refused(429, retry_after=True),
    "retry-date": refused(429, retry_after=True),
    "redirect": Expected(
        "open", lambda got: got.status == 307 and got.headers["location"] == "http://[::1]:9/"
    ),
    "context": refused(400),
    "content-refused": refused(400),
    "prefill-refusal": Expected("open", complete),
    "flapping": refused(503),
    "bursts": refused(503),
    "silent": Expected("open", nothing, same_in_one=True),
    "silent-after-headers": Expected("open", headers_alone, same_in_one=True),
    "stall": Expected("open", cut),
    "stall-mid-event": Expected("open", mid),
    "stall-mid-chunk": Expected("open", mid),
    "stall-after-finish": Expected("open", finished),
    "stall-before-terminator": Expected("open", done),
    "keep-alive-forever": Expected(
        "eof",
        lambda got: not got.events and got.body.count(b": keep-alive\n\n") > 3,
        "keep_alive_s=0.01&hold_s=0.2",
    ),
    "stall-keep-alive": Expected(
        "eof",
        lambda got: cut(got) and got.body.count(b": keep-alive\n\n") > 3,
        "keep_alive_s=0.01&hold_s=0.2",
    ),
    "slow-headers": Expected("open", nothing, same_in_one=True),
    "drip-headers": Expected("open", lambda got: 0 < len(got.raw) < 15),
    "slow-first-token": Expected("open", headers_alone),
    "slow": Expected("open", complete),
    "drip": Expected("open", lambda got: got.status == 200 and 0 < len(got.body) < 15),
    "deaf": Expected("open", complete),
    **ends("reset", "reset"),
    **ends("fin", "eof"),
    "eof": Expected("open", lambda got: cut(got) and got.whole),
    "eof-at-once": Expected("open", lambda got: cut(got, "") and got.whole and not got.events),
    "eof-unframed": Expected("eof", lambda got: cut(got) and got.headers["connection"] == "close"),
    "flood": Expected("eof", lambda got: len(got.body) > 20_000, "hold_s=0.1"),
    "refuse-connections": Expected("reset", nothing, "refuse_s=0.01"),
    "malformed": last_event('{"choices": [{"delta": {"content": "half'),
    "not-json": last_event("upstream connect error"),
    "not-an-object": last_event([1, 2]),
    "error-event": last_event({"error": ERROR}),
    "error-text": last_event({"error": "the engine died"}),
    "error-object": last_event({"object": "error", **MESSAGE, "code": 500}),
    "event-error": Expected("open", lambda got: cut(got) and got.events[-1].kind == "error"),
    "no-choices": last_event(MESSAGE),
    "choices-null": last_event({"choices": None}),
    "length": Expected("open", lambda got: got.finishes == ["length"]),
    "content-filter": Expected("open", lambda got: got.finishes == ["content_filter"]),
    "overloaded": Expected("open", lambda got: got.finishes == ["insufficient_system_resource"]),
    "odd-finish": Expected("open", lambda got: got.finishes == ["sim_reason"]),
    "done-without-finish": Expected("open", lambda got: cut_before(got) and got.done_count == 1),
    "no-finish": Expected(
        "open", lambda got: got.text == ANSWER and not got.finishes and got.done_count == 1
    ),
    "no-usage": Expected(
        "open", lambda got: got.done_count == 1 and not any("usage" in d for d in got.datas[:-1])
    ),
    "no-done": Expected("open", lambda got: got.finishes == ["stop"] and not got.done_count),
    "duplicate-finish": Expected("open", lambda got: got.finishes == ["stop"] * 2),
    "duplicate-done": Expected("open", lambda got: got.done_count == 2),
    "bad-arguments": Expected("open", complete),
    "html": Expected(
        "open", lambda got: b"<html>" in got.body and got.headers["content-type"] == "text/html"
    ),
    "empty": Expected("open", lambda got: got.status == 200 and not got.body.strip()),
    "json": Expected("open", lambda got: got.json["choices"][0]["message"]["content"] == "Hello"),
    "wrong-charset": Expected(
        "open", lambda got: got.text == SEPARATORS and "iso-8859-1" in got.headers["content-type"]
    ),
    "wrong-type": Expected(
        "open", lambda got: complete(got) and got.headers["content-type"] == "text/plain"
    ),
    "crlf": framed(b"\r\n\r\n"),
    "cr": framed(b"\r\r"),
    "mixed-lines": framed(b"\r\r"),
    "bom": framed(b"\xef\xbb\xbf"),
    "one-byte": Expected("open", lambda got: complete(got) and set(map(len, got.pieces)) == {1}),
    "split-utf8": Expected(
        "open", lambda got: got.text == SEPARATORS and any(p[0] & 0x80 for p in got.pieces)
    ),
    "no-space": framed(b"data:{"),
    "multiline": framed(b"\ndata:   "),
    "extra-events": framed(b"retry: 3000"),
    "separators": Expected("open", lambda got: got.text == SEPARATORS),
    "framing": Expected("open", lambda got: got.text == SEPARATORS and got.done_count == 1),
}
FAST_RULES = {"flapping": "?up_s=0&down_s=1000", "bursts": "?burst_enter=1"}


def rule(name: str) -> str:
    expected = EXPECTED[name]
    return name + FAST_RULES.get(name, f"?{expected.changes}" if expected.changes else "")


def quiet(name: str) -> float:
    """Return how long to wait for more: short where silence is what is expected."""
    silent = ("silent", "stall", "slow-", "drip")
    return QUIET_S if name.startswith(silent) and "keep" not in name else 5.0
