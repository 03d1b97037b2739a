"""Lists what the HTTP door promises to clients of OpenAI's API; in the order of the ids."""

from tests.ledger.entry import Requirement

HTTP: dict[str, Requirement] = {
    "http:cancel": Requirement(
        "When a client closes its connection, in whatever phase, the provider has lost its own "
        "within 250 ms and no hop has anything left.",
        "issue 5",
    ),
    "http:client-errors": Requirement(
        "OpenAI's clients raise their own type of error for every failure, before an answer and in "
        "the middle of one, and do not repeat what was tried in vain.",
        "issue 5",
    ),
    "http:curl": Requirement(
        "curl asks and reads without anything else.",
        "issue 5",
    ),
    "http:deadline": Requirement(
        "The shortest time that a header tells is the caller's deadline, capped; the answer comes "
        "before it.",
        "design 3, issue 5",
    ),
    "http:document-is-kept": Requirement(
        "What the OpenAPI document allows is taken and answered as it says, what it does not is "
        "refused, and nothing of it makes the suite fail.",
        "issue 5",
    ),
    "http:document-is-true": Requirement(
        "The OpenAPI document is valid, and names the endpoints that are served and no other.",
        "issue 5",
    ),
    "http:documented": Requirement(
        "What the documentation of the HTTP door runs is run by the tests.",
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
    "http:json-only": Requirement(
        "A page of anybody cannot ask a door without keys on its reader's machine: a body is read "
        "only if it says that it is JSON.",
        "decision 32",
    ),
    "http:langchain": Requirement(
        "LangChain's client for OpenAI chats, streams and calls tools.",
        "issue 5",
    ),
    "http:names-travel": Requirement(
        "Request, run and trace have the names that came with them, in every hop and at the "
        "provider.",
        "issue 5",
    ),
    "http:never-two-texts": Requirement(
        "A client that cannot take text back never gets two models' texts in one answer.",
        "design 7, issue 5",
    ),
    "http:openai-javascript": Requirement(
        "OpenAI's JavaScript client chats, streams, calls tools, waits and leaves.",
        "issue 5",
    ),
    "http:openai-python": Requirement(
        "OpenAI's Python client chats, streams, calls tools, waits and leaves.",
        "issue 5",
    ),
    "http:paths": Requirement(
        "A path is served by its methods, the head alone as all of it; a wrong method is told the "
        "right ones, a slash too many leads to the right place, and nothing else is guessed.",
        "issue 5",
    ),
    "http:requests-are-read-or-refused": Requirement(
        "A request for a chat is honoured whole; a field that cannot be is refused by its name, "
        "and what would not change the answer is taken.",
        "issue 5",
    ),
    "http:responses": Requirement(
        "OpenAI's newer API is served for text and for a caller's tools, whole and as events; what "
        "would have to be stored is refused.",
        "issue 5",
    ),
    "http:stream-errors": Requirement(
        "A stream that fails after it has begun ends with one error event that names the reason, "
        "the hop and the milliseconds left, and without [DONE].",
        "issue 5",
    ),
    "http:tool-rounds": Requirement(
        "A client is asked for its tools, whole or in a stream, and goes on from their results.",
        "issue 5",
    ),
    "http:writes-gather": Requirement(
        "The head of an answer goes out with the first of its body, and events that come at once "
        "together, five milliseconds late at most; in their order, and none is lost.",
        "issue 5",
    ),
}
"""By id, as in tests/requirements.py."""
