"""Turns what providers answer into errors that say what to correct, and no secrets."""

import orjson
import pytest

from services.model.backend import Provider
from services.model.complaints import Complaint, complained, read_complaint, refused
from services.model.refusal import MAX_QUOTE_LENGTH, Exchange
from services.runtime.conversation import Message, ToolCall, ToolOffer
from services.runtime.errors import Code

KEY = "sk-secret-1234567890"
PROVIDER = Provider(base_url="http://provider/v1", model="gpt-wrong", api_key=KEY)
PROMPT = [Message("user", "My card number is 4000 1234 5678 9010 and I want a refund.")]
EXCHANGE = Exchange(PROVIDER, PROMPT)


def saying(message: str, **more: str) -> dict[str, object]:
    return {"error": {"message": message, **more}}


STATUSES = [
    (400, saying("max_tokens too large"), "PROVIDER_REFUSED", "request_refused"),
    (400, saying("x", code="context_length_exceeded"), "CONTEXT_LENGTH", "context_length"),
    (400, saying("x", type="exceed_context_size_error"), "CONTEXT_LENGTH", "context_length"),
    (400, saying("the maximum context length is 8192"), "CONTEXT_LENGTH", "context_length"),
    (413, {}, "CONTEXT_LENGTH", "context_length"),
    (401, saying("bad"), "PROVIDER_KEY_REFUSED", "key_refused"),
    (403, saying("bad"), "PROVIDER_KEY_REFUSED", "key_refused"),
    (402, saying("Insufficient Balance"), "PROVIDER_NO_BALANCE", "no_balance"),
    (404, {"detail": "Not Found"}, "PROVIDER_MODEL_UNKNOWN", "model_unknown"),
    (422, {"detail": [{"loc": ["body"]}]}, "PROVIDER_REFUSED", "request_refused"),
    (429, saying("slow down"), "PROVIDER_RATE_LIMITED", "rate_limit"),
    (429, saying("x", code="insufficient_quota"), "PROVIDER_NO_BALANCE", "no_balance"),
    (400, saying("Content Exists Risk"), "CONTENT_FILTERED", "content_filter"),
    (400, saying("x", code="content_policy_violation"), "CONTENT_FILTERED", "content_filter"),
    (400, saying("x", code="data_inspection_failed"), "CONTENT_FILTERED", "content_filter"),
    (403, saying("Your input needs moderation"), "CONTENT_FILTERED", "content_filter"),
    (400, saying("Model Not Exist"), "PROVIDER_MODEL_UNKNOWN", "model_unknown"),
    (408, saying("too slow"), "PROVIDER_ERROR", "provider_error"),
    (307, {}, "PROTOCOL_ERROR", "redirect"),
    (500, saying("died"), "PROVIDER_ERROR", "provider_error"),
    (503, saying("context length"), "PROVIDER_ERROR", "provider_error"),
    (529, {}, "PROVIDER_ERROR", "provider_error"),
]


@pytest.mark.parametrize(("status", "body", "reason", "cause"), STATUSES)
def test_a_status_says_what_to_correct(
    status: int, body: dict[str, object], reason: str, cause: str
) -> None:
    error = refused(EXCHANGE, status, read_complaint(orjson.dumps(body)))

    assert error.origin is not None
    assert (error.origin.hop, error.origin.code) == ("llm", f"HTTP_{status}")
    assert (error.origin.reason, error.cause) == (reason, cause)
    overloaded = reason == "PROVIDER_RATE_LIMITED"
    assert error.code is (Code.RESOURCE_EXHAUSTED if overloaded else Code.ABORTED)


def test_the_time_to_come_back_is_passed_on() -> None:
    error = refused(EXCHANGE, 429, Complaint("slow down"), retry_after_s=7.0)

    assert error.retry_after_s == 7.0


def test_a_refused_key_names_the_setting_and_never_the_key() -> None:
    error = refused(EXCHANGE, 401, Complaint(f"Incorrect API key provided: {KEY[:10]}***"))

    assert "SIXHOP_MODEL__API_KEY" in error.message
    assert KEY[:10] not in error.message


def test_a_missing_key_is_told_as_missing() -> None:
    exchange = Exchange(Provider(base_url="http://provider/v1", model="m"))

    error = refused(exchange, 401, Complaint("no key"))

    assert "none is set" in error.message


def test_an_unknown_model_is_named() -> None:
    error = refused(EXCHANGE, 404, Complaint("nope"))

    assert "'gpt-wrong'" in error.message


@pytest.mark.parametrize("status", [400, 402, 404, 422, 429, 500])
def test_a_quote_never_holds_the_key(status: int) -> None:
    error = refused(EXCHANGE, status, Complaint(f"header was Bearer {KEY}"))

    assert KEY not in error.message
    assert "***" in error.message


@pytest.mark.parametrize("said", [PROMPT[0].content, f"input_value={PROMPT[0].content[:40]}..."])
def test_a_quote_never_holds_the_prompt(said: str) -> None:
    error = refused(EXCHANGE, 422, Complaint(said))

    assert "4000 1234" not in error.message


def test_a_quote_never_holds_what_tools_were_asked_or_thought() -> None:
    call = ToolCall("a", "mail", '{"to": "alice.chen@example.com"}')
    spoken = Message("assistant", "", (call,), reasoning="She must not know about it at all.")
    offer, schema = (
        ToolOffer("mail", "", '{"secret shape": "of ours"}'),
        '{"secret answer": "7 and more of ours"}',
    )
    exchange = Exchange(PROVIDER, [spoken], [offer], schema)

    for text in (call.arguments, spoken.reasoning, offer.arguments_schema, schema):
        assert "withheld" in exchange.quote(f"bad: {text}")


def test_a_quote_is_short_and_in_one_line() -> None:
    quote = EXCHANGE.quote("line\n" * 1000)

    assert len(quote) <= MAX_QUOTE_LENGTH + len("“…”")
    assert "\n" not in quote


def test_a_quote_is_marked_as_one() -> None:
    assert EXCHANGE.quote("too many\nrequests") == "“too many requests”"
    assert EXCHANGE.quote("").startswith("(")
    assert EXCHANGE.quote("word " * 100).endswith("…”")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"<html>oops</html>", Complaint("<html>oops</html>")),
        (b"", Complaint("")),
        (b"[1]", Complaint("[1]")),
        ({"error": "died"}, Complaint("died")),
        ({"message": "died"}, Complaint("died")),
        ({"error": {"message": {"a": 1}}}, Complaint('{"a":1}')),
        (
            {"error": {"message": "m", "type": "t", "code": "c"}},
            Complaint("m", "t c"),
        ),
        ({"error": {"message": "m", "code": 503}}, Complaint("m", "503", 503)),
        ({"error": {"message": "m", "code": "429"}}, Complaint("m", "429", 429)),
        ([{"error": {"message": "m"}}], Complaint("m")),
    ],
)
def test_complaints_of_all_shapes_are_read(body: object, expected: Complaint) -> None:
    assert read_complaint(body) == expected


def test_an_error_inside_of_a_stream_that_names_no_status_is_the_providers() -> None:
    error = complained(EXCHANGE, {"error": {"message": "died", "type": "server_error"}})

    assert error.origin is not None
    assert error.origin.reason == "PROVIDER_ERROR"
    assert "server_error “died”" in error.message


@pytest.mark.parametrize(
    ("said", "reason", "code"),
    [
        ({"type": "rate_limit_error"}, "PROVIDER_RATE_LIMITED", Code.RESOURCE_EXHAUSTED),
        ({"type": "overloaded_error"}, "PROVIDER_OVERLOADED", Code.RESOURCE_EXHAUSTED),
        ({"type": "authentication_error"}, "PROVIDER_KEY_REFUSED", Code.ABORTED),
        ({"code": "invalid_api_key"}, "PROVIDER_KEY_REFUSED", Code.ABORTED),
        ({"code": "context_length_exceeded"}, "CONTEXT_LENGTH", Code.ABORTED),
        ({"code": "content_filter"}, "CONTENT_FILTERED", Code.ABORTED),
        ({"code": "insufficient_quota"}, "PROVIDER_NO_BALANCE", Code.ABORTED),
        ({"code": 401}, "PROVIDER_KEY_REFUSED", Code.ABORTED),
        ({"code": "503"}, "PROVIDER_ERROR", Code.ABORTED),
        ({}, "PROVIDER_ERROR", Code.ABORTED),
    ],
    ids=str,
)
def test_an_error_inside_of_a_stream_is_known_by_the_names_that_it_gives_itself(
    said: dict[str, object], reason: str, code: Code
) -> None:
    error = complained(EXCHANGE, {"error": {"message": "x", **said}})

    assert error.origin is not None
    assert (error.origin.reason, error.code) == (reason, code)


@pytest.mark.parametrize(
    ("status", "opens"),
    [(401, True), (402, True), (403, True), (400, False), (404, False), (429, False), (500, False)],
)
def test_a_provider_that_refuses_everything_opens_the_breaker(status: int, opens: bool) -> None:
    assert refused(EXCHANGE, status, Complaint("no")).opens_breaker is opens
