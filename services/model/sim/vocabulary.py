"""Lists the faults by their names."""

from collections.abc import Mapping

from services.model.sim.faults import FOREVER_S, Entry

ERROR_EVENT = '{"error":{"message":"the engine died","type":"server_error","code":null}}'
MESSAGE_EVENT = '{"message":"the engine died"}'
DETAIL_EVENT = '{"object":"error","message":"the engine died","code":500}'
TEXT_EVENT = '{"error":"the engine died"}'
PAGE = "<html><body><h1>502 Bad Gateway</h1></body></html>"
WHOLE = (
    '{"object":"chat.completion","choices":[{"index":0,"finish_reason":"stop",'
    '"message":{"role":"assistant","content":"Hello"}}]}'
)
SEPARATORS = "one\u2028two\u2029three\u0085four 五\u000bsix\u000cseven 🙂 end."
"""Characters at which careless readers end a line."""


def _refusal(about: str, status: int, message: str, **more: object) -> Entry:
    return Entry(about, {"status": status, "message": message, **more})


def _ends(name: str, ending: str, sign: str) -> dict[str, Entry]:
    """Return one way of ending at every stage."""
    places = {
        "before-headers": ("request", "before the headers"),
        "after-headers": ("headers", "after the headers"),
        "mid-event": ("event", "in the middle of an event"),
        "mid-chunk": ("chunk", "in the middle of an HTTP chunk"),
        "after-finish": ("finish", "after the finish_reason, before [DONE]"),
        "before-terminator": ("end", "after [DONE], before the last HTTP chunk"),
    }
    named = {
        f"{name}-{place}": Entry(f"{sign} {about}", {"ending": ending, "stage": stage})
        for place, (stage, about) in places.items()
    }
    return {name: Entry(f"{sign} between two events", {"ending": ending}), **named}


def _event(about: str, event: str, **more: object) -> Entry:
    return Entry(about, {"ending": "event", "event": event, **more})


REFUSALS: Mapping[str, Entry] = {
    "400": _refusal("refused as invalid", 400, "the request is invalid"),
    "401": _refusal("the key is wrong", 401, "Authentication Fails (no such user)"),
    "402": _refusal("the balance is used up", 402, "Insufficient Balance"),
    "403": _refusal("the key may not do this", 403, "your key may not use this model"),
    "404": _refusal("no such model", 404, "Model Not Exist", code="model_not_found"),
    "408": _refusal("the server tired of waiting", 408, "request timeout"),
    "409": _refusal("a conflict", 409, "the request conflicts with another"),
    "413": _refusal("the request is too large", 413, "request entity too large"),
    "422": _refusal("a parameter is wrong", 422, "a parameter of the request is invalid"),
    "429": _refusal("too many requests", 429, "Rate limit reached", code="rate_limit_exceeded"),
    "500": _refusal("a defect of the server", 500, "the server had an error"),
    "502": _refusal("a proxy found nobody", 502, "bad gateway"),
    "503": _refusal("the server is overloaded", 503, "the server is overloaded"),
    "504": _refusal("a proxy waited in vain", 504, "gateway timeout"),
    "529": _refusal("the server is overloaded, as some say it", 529, "overloaded"),
    "retry-after": _refusal("429 with Retry-After in seconds", 429, "slow down", retry_after_s=2.0),
    "retry-date": _refusal(
        "429 with Retry-After as a date", 429, "slow down", retry_after_s=2.0, retry_after_date=True
    ),
    "redirect": _refusal("307 to an address where nobody is", 307, "", location="http://[::1]:9/"),
    "context": Entry("a context window of one token: 400 in the dialect's words", {"window": 1}),
    "content-refused": _refusal(
        "the prompt is refused by policy", 400, "Content Exists Risk", code="content_filter"
    ),
    "prefill-refusal": Entry(
        "400 when the prompt ends with the assistant's words", {"prefill": False}
    ),
}
SILENCES: Mapping[str, Entry] = {
    "silent": Entry("takes the request and never answers", {"ending": "stall", "stage": "request"}),
    "silent-after-headers": Entry(
        "sends headers, and then nothing", {"ending": "stall", "stage": "headers"}
    ),
    "stall": Entry("falls silent between two events", {"ending": "stall"}),
    "stall-mid-event": Entry("falls silent inside an event", {"ending": "stall", "stage": "event"}),
    "stall-mid-chunk": Entry(
        "falls silent inside an HTTP chunk", {"ending": "stall", "stage": "chunk"}
    ),
    "stall-after-finish": Entry(
        "falls silent after the finish_reason", {"ending": "stall", "stage": "finish"}
    ),
    "stall-before-terminator": Entry(
        "falls silent after [DONE]", {"ending": "stall", "stage": "end"}
    ),
    "keep-alive-forever": Entry(
        "sends comments (empty lines without a stream), and no token",
        {"ending": "stall", "at_token": 0, "keep_alive_s": 0.25},
    ),
    "stall-keep-alive": Entry(
        "falls silent between two events, but for comments",
        {"ending": "stall", "keep_alive_s": 0.25},
    ),
    "slow-headers": Entry("waits a minute before its headers", {"headers_after_s": 60.0}),
    "drip-headers": Entry("sends its head byte by byte, one a second", {"head_pause_s": 1.0}),
    "slow-first-token": Entry("waits a minute for its first token", {"first_token_after_s": 60.0}),
    "slow": Entry("is ten times slower", {"slowdown": 10.0}),
    "drip": Entry("sends 16 bytes a second", {"write_bytes": 4, "write_pause_s": 0.25}),
    "deaf": Entry("works on after its client left, and so writes in vain", {"notice_s": FOREVER_S}),
}
CUTS: Mapping[str, Entry] = {
    **_ends("reset", "reset", "RST"),
    **_ends("fin", "close", "FIN"),
    "eof": Entry(
        "ends its body as HTTP should, without finish and [DONE]",
        {"ending": "close", "clean": True},
    ),
    "eof-at-once": Entry(
        "the same before the first token", {"ending": "close", "clean": True, "at_token": 0}
    ),
    "eof-unframed": Entry(
        "the same by FIN alone, which is clean where no HTTP chunks frame the body",
        {"ending": "close", "chunked": False},
    ),
    "flood": Entry("sends comments without end, as fast as they are read", {"ending": "flood"}),
    "refuse-connections": Entry(
        "resets, and closes the listener for five seconds",
        {"ending": "reset", "stage": "request", "refuse_s": 5.0},
    ),
}
EVENTS: Mapping[str, Entry] = {
    "malformed": _event("an event that is half a JSON", '{"choices": [{"delta": {"content": "half'),
    "not-json": _event("an event that is no JSON", "upstream connect error"),
    "not-an-object": _event("an event that is JSON and no object", "[1, 2]"),
    "error-event": _event("OpenAI's error inside the stream", ERROR_EVENT),
    "error-text": _event("an error that is a text inside the stream", TEXT_EVENT),
    "error-object": _event("vLLM's error inside the stream", DETAIL_EVENT),
    "event-error": _event("`event: error` with a message", MESSAGE_EVENT, event_kind="error"),
    "no-choices": _event("an event without choices", MESSAGE_EVENT),
    "choices-null": _event("an event whose choices are null", '{"choices": null}'),
}
FINISHES: Mapping[str, Entry] = {
    "length": Entry("says that it was cut by max_tokens", {"finish_reason": "length"}),
    "content-filter": Entry("is cut by the filter", {"finish_reason": "content_filter"}),
    "overloaded": Entry("is cut by load", {"finish_reason": "insufficient_system_resource"}),
    "odd-finish": Entry("names a reason that nobody knows", {"finish_reason": "sim_reason"}),
    "done-without-finish": Entry("[DONE] in the middle, without finish", {"ending": "done"}),
    "no-finish": Entry("the whole text, usage and [DONE], without finish", {"finish": False}),
    "no-usage": Entry("leaves out the usage", {"usage": False}),
    "no-done": Entry("leaves out [DONE]", {"done": False}),
    "duplicate-finish": Entry("says its finish twice", {"finish_count": 2}),
    "duplicate-done": Entry("says [DONE] twice", {"done_count": 2}),
    "bad-arguments": Entry("a tool call whose arguments are cut", {"bad_arguments": True}),
}
BODIES: Mapping[str, Entry] = {
    "html": Entry("200 with a page of HTML", {"body": PAGE, "content_type": "text/html"}),
    "empty": Entry("200 with nothing", {"body": "\n"}),
    "json": Entry(
        "200 with a whole JSON answer where a stream was asked for",
        {"body": WHOLE, "content_type": "application/json"},
    ),
    "wrong-charset": Entry(
        "says iso-8859-1 and writes UTF-8",
        {"content_type": "text/event-stream; charset=iso-8859-1", "text": SEPARATORS},
    ),
    "wrong-type": Entry("calls its stream text/plain", {"content_type": "text/plain"}),
}
FRAMINGS: Mapping[str, Entry] = {
    "crlf": Entry("lines end with CRLF", {"line_ending": "crlf"}),
    "cr": Entry("lines end with CR", {"line_ending": "cr"}),
    "mixed-lines": Entry("lines end with LF, CRLF and CR in turn", {"line_ending": "mix"}),
    "bom": Entry("a byte order mark comes first", {"bom": True}),
    "one-byte": Entry("one byte at a time", {"write_bytes": 1}),
    "split-utf8": Entry(
        "every character is cut, in characters that have several bytes",
        {"split_utf8": True, "text": SEPARATORS},
    ),
    "no-space": Entry("`data:` without a space", {"data_space": False}),
    "multiline": Entry("the data of an event in several lines", {"multiline": True}),
    "extra-events": Entry("id, retry, ping and empty events in between", {"extra_events": True}),
    "separators": Entry("U+2028 and its kin inside the text", {"text": SEPARATORS}),
    "framing": Entry(
        "all of these at once",
        {
            "line_ending": "mix",
            "bom": True,
            "write_bytes": 1,
            "data_space": False,
            "multiline": True,
            "extra_events": True,
            "text": SEPARATORS,
        },
    ),
}
SEQUENCES: Mapping[str, Entry] = {
    "flapping": _refusal("well for 5 s, 503 for 5 s, in turn", 503, "down", up_s=5.0, down_s=5.0),
    "bursts": _refusal("503 in bursts", 503, "the server is overloaded", burst_enter=0.1),
}
GOOD: Mapping[str, Entry] = {
    "none": Entry("no fault"),
    "at-once": Entry("no waits at all", {"first_token_after_s": 0.0, "token_interval_s": 0.0}),
    "reasoning": Entry("five tokens of reasoning come first", {"reasoning": 5}),
}
GROUPS: Mapping[str, Mapping[str, Entry]] = {
    "good answers": GOOD,
    "refusals": REFUSALS,
    "silence and slowness": SILENCES,
    "cuts": CUTS,
    "events": EVENTS,
    "finishes": FINISHES,
    "wrong bodies": BODIES,
    "framing": FRAMINGS,
    "sequences": SEQUENCES,
}
"""The table by what the faults are about."""
FAULTS: Mapping[str, Entry] = {
    name: entry for group in GROUPS.values() for name, entry in group.items()
}
"""Every name that a request, a rule or a script may use."""
