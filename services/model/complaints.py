"""Reads what a provider says when it refuses or fails, and finds what has to be corrected."""

from collections.abc import Callable
from dataclasses import dataclass

import orjson

from services.model.refusal import Exchange, Reason, failed, overloaded
from services.runtime.errors import DependencyError

Description = tuple[Reason, str, str]
Describe = Callable[[Exchange], Description]


@dataclass(frozen=True, slots=True)
class Complaint:
    """Holds what a provider's error object says."""

    message: str = ""
    kind: str = ""
    """Its machine-readable names, joined."""
    status: int = 0
    """The HTTP status that it names inside of itself, or 0."""


def read_complaint(body: object) -> Complaint:
    """Return what an error says: its bytes, or the JSON value of an `error` field or body."""
    if isinstance(body, bytes):
        raw = body
        try:
            body = orjson.loads(raw)
        except orjson.JSONDecodeError:
            return Complaint(raw.decode("utf-8", "replace"))
    if isinstance(body, list) and body and isinstance(body[0], dict):
        # So Google answers.
        body = body[0]
    if isinstance(body, dict) and body.get("error") is not None:
        body = body["error"]
    if not isinstance(body, dict):
        return Complaint(body if isinstance(body, str) else orjson.dumps(body).decode())
    code = body.get("code")
    names = [str(name) for name in (body.get("type"), code) if name is not None]
    message = body.get("message") or body.get("detail") or ""
    return Complaint(
        message if isinstance(message, str) else orjson.dumps(message).decode(),
        " ".join(names),
        _status(code),
    )


def _status(code: object) -> int:
    if isinstance(code, str) and code.isdecimal() and len(code) == 3:
        code = int(code)
    return code if isinstance(code, int) and 400 <= code <= 599 else 0


def refused(
    exchange: Exchange, status: int, complaint: Complaint, retry_after_s: float | None = None
) -> DependencyError:
    """Return the error of a provider that answered with an HTTP status."""
    special = _special(complaint) if 400 <= status < 500 else None
    describe = special or _BY_STATUS.get(status) or _by_class(status)
    return _described(
        exchange, describe, complaint, code=f"HTTP_{status}", retry_after_s=retry_after_s
    )


def complained(exchange: Exchange, body: object) -> DependencyError:
    """Return the error of a provider that failed inside of a stream that had begun well."""
    complaint = read_complaint(body)
    if complaint.status:
        return refused(exchange, complaint.status, complaint)
    kind = complaint.kind.lower()
    by_kind = (describe for words, describe in _BY_KIND if words in kind)
    describe = _special(complaint) or next(by_kind, None)
    if describe is not None:
        return _described(exchange, describe, complaint)
    told = f"{complaint.kind} {exchange.quote(complaint.message)}".strip()
    return failed(
        Reason.PROVIDER_ERROR, "provider_error", f"the provider failed while it wrote: {told}"
    )


def _described(
    exchange: Exchange,
    describe: Describe,
    complaint: Complaint,
    *,
    code: str = "",
    retry_after_s: float | None = None,
) -> DependencyError:
    reason, cause, text = describe(exchange)
    if reason is not Reason.PROVIDER_KEY_REFUSED:
        # Whoever refuses a key may repeat a part of it.
        text = f"{text}: {exchange.quote(complaint.message)}"
    kind = overloaded if reason in _OVERLOAD else failed
    return kind(reason, cause, text, code=code, retry_after_s=retry_after_s)


def _key_refused(exchange: Exchange) -> Description:
    setting = exchange.provider.key_setting
    what = "refused the key" if exchange.provider.api_key else "wants a key and none is set"
    return Reason.PROVIDER_KEY_REFUSED, "key_refused", f"the provider {what}; correct {setting}"


def _no_balance(exchange: Exchange) -> Description:
    return (
        Reason.PROVIDER_NO_BALANCE,
        "no_balance",
        "the provider's account has no balance; top it up or set another provider",
    )


def _model_unknown(exchange: Exchange) -> Description:
    return (
        Reason.PROVIDER_MODEL_UNKNOWN,
        "model_unknown",
        f"the provider at {exchange.provider.base_url} does not know the model "
        f"{exchange.provider.model!r}; correct {exchange.provider.model_setting} or "
        f"{exchange.provider.url_setting}",
    )


def _rate_limited(exchange: Exchange) -> Description:
    return Reason.PROVIDER_RATE_LIMITED, "rate_limit", "the provider takes no more requests now"


def _context_length(exchange: Exchange) -> Description:
    return (
        Reason.CONTEXT_LENGTH,
        "context_length",
        "the prompt is longer than the model's window; send less",
    )


def _content_filtered(exchange: Exchange) -> Description:
    return (
        Reason.CONTENT_FILTERED,
        "content_filter",
        "the provider's content policy refuses the prompt; ask in other words",
    )


def _overloaded(exchange: Exchange) -> Description:
    return (
        Reason.PROVIDER_OVERLOADED,
        "overloaded",
        "the provider cut the answer because it has too much to do",
    )


def _redirected(exchange: Exchange) -> Description:
    return (
        Reason.PROTOCOL_ERROR,
        "redirect",
        "the provider redirects elsewhere, and keys are not carried there; "
        f"set {exchange.provider.url_setting} to where it points",
    )


def _other_refusal(exchange: Exchange) -> Description:
    return Reason.PROVIDER_REFUSED, "request_refused", "the provider refused the request"


def _provider_error(exchange: Exchange) -> Description:
    return Reason.PROVIDER_ERROR, "provider_error", "the provider failed"


_BY_STATUS: dict[int, Describe] = {
    401: _key_refused,
    402: _no_balance,
    403: _key_refused,
    404: _model_unknown,
    413: _context_length,
    429: _rate_limited,
}
_OVERLOAD = frozenset({Reason.PROVIDER_RATE_LIMITED, Reason.PROVIDER_OVERLOADED})
_CONTEXT_WORDS = (
    "context_length", "exceed_context_size", "context length", "context size", "context window",
)  # fmt: skip
_CONTENT_WORDS = (
    "content_filter", "content_policy", "content policy", "content management policy",
    "content exists risk", "data_inspection_failed", "datainspectionfailed", "moderation",
)  # fmt: skip
_BALANCE_WORDS = ("insufficient_quota", "insufficient balance")
_MODEL_WORDS = ("model_not_found", "model not exist", "model not found")
_BY_WORDS: tuple[tuple[tuple[str, ...], Describe], ...] = (
    (_CONTEXT_WORDS, _context_length),
    (_CONTENT_WORDS, _content_filtered),
    (_BALANCE_WORDS, _no_balance),
    (_MODEL_WORDS, _model_unknown),
)
"""What a body says more exactly than its status does; the first that fits counts."""
_BY_KIND: tuple[tuple[str, Describe], ...] = (
    ("rate_limit", _rate_limited),
    ("overloaded", _overloaded),
    ("insufficient_system_resource", _overloaded),
    ("authentication", _key_refused),
    ("invalid_api_key", _key_refused),
)
"""What an error inside of a stream is, by the name that it gives itself."""


def _special(complaint: Complaint) -> Describe | None:
    said = f"{complaint.kind} {complaint.message}".lower()
    fitting = (describe for words, describe in _BY_WORDS if any(each in said for each in words))
    return next(fitting, None)


def _by_class(status: int) -> Describe:
    if 300 <= status < 400:
        return _redirected
    # The provider was too slow to read, which passes.
    return _provider_error if status >= 500 or status == 408 else _other_refusal
