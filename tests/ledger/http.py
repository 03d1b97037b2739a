"""Lists what the HTTP door promises to clients of OpenAI's API; in the order of the ids."""

from tests.ledger.entry import Requirement

HTTP: dict[str, Requirement] = {
    "http:document-is-true": Requirement(
        "The OpenAPI document is valid, and names the endpoints that are served and no other.",
        "issue 5",
    ),
    "http:every-answer-is-named": Requirement(
        "Every answer has the request's id, as it came or as it was made: refusals, pages that "
        "are not there and defects too.",
        "issue 5",
    ),
    "http:every-reason-has-a-status": Requirement(
        "Every error of the design's table has one HTTP status and one body in OpenAI's shape, "
        "and OpenAI's clients repeat by themselves only what did nothing.",
        "design 5, issue 5",
    ),
    "http:never-two-texts": Requirement(
        "A client that cannot take text back never gets two models' texts in one answer.",
        "design 7, issue 5",
    ),
    "http:requests-are-read-or-refused": Requirement(
        "A request for a chat is honoured whole; a field that cannot be is refused by its name, "
        "and what would not change the answer is taken.",
        "issue 5",
    ),
}
"""By id, as in tests/requirements.py."""
