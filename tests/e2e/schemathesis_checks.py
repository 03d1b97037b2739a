"""Adds to Schemathesis' checks what a schema cannot say; Schemathesis loads it, not pytest."""

import re
from typing import Any

import schemathesis
from schemathesis import Case, CheckContext, Response
from schemathesis.checks import not_a_server_error, positive_data_acceptance

DEADLINE = "x-sixhop-deadline-ms"
SHORT_MS = 20_000
"""A caller that waits shorter may be told on a busy machine that its time is over."""
UNSAYABLE = re.compile(
    "|".join(
        (
            # One part of a request has to fit another.
            "must be user, or tool, in the last message",
            "must end with the user's word",
            "no call right before it has this id",
            "before the results of these tool calls",
            "give each call its own id",
            "of an offered tool",
            "an order ends by itself",
            "offer each tool once",
            "contradicts max_completion_tokens",
            # To a schema 1.0 is an integer as well.
            "should be a valid integer",
            # A text has to say something, in whatever parts it comes.
            "is empty; say something",
            "is empty; ask something",
            "say why in 1 to",
            # A setting says how much.
            "the limit is [0-9]",
        )
    )
)
"""Rules that no JSON schema can say: by what requests are told that break one."""


@schemathesis.check
def no_failure(ctx: CheckContext, response: Response, case: Case[Any]) -> bool | None:
    """Allow no 5xx of a suite that is well, but to those who did not wait for it."""
    if response.status_code == 504 and waits_ms(case) < SHORT_MS:
        return None
    return not_a_server_error(ctx, response, case)


@schemathesis.check
def valid_is_taken(ctx: CheckContext, response: Response, case: Case[Any]) -> bool | None:
    """Have everything taken that the document allows, but for the rules that it cannot say."""
    if response.status_code == 400 and UNSAYABLE.search(response.json()["error"]["message"]):
        return None
    taken: bool | None = positive_data_acceptance(ctx, response, case)
    return taken


def waits_ms(case: Case[Any]) -> float:
    """Return how long the caller said it would wait."""
    text = str(case.headers.get(DEADLINE, ""))
    return int(text) if text.isdecimal() else float("inf")
