"""Lists what the HTTP door promises of connections, whatever comes over them."""

from tests.ledger.entry import Requirement

HTTP_WIRE: dict[str, Requirement] = {
    "http:bounded-body": Requirement(
        "A body that is too large, too slow, half sent or compressed is refused, and nothing of it "
        "is kept.",
        "issue 5",
    ),
    "http:bounded-head": Requirement(
        "Headers that are too large, or come too slowly, end their connection and no other.",
        "issue 5",
    ),
    "http:drain": Requirement(
        "A gateway that is told to stop lets answers over HTTP finish, and tells those that it "
        "cannot wait for. Until it is gone it answers: /readyz with 503, and whatever is new with "
        "503, when to come back, and `Connection: close`.",
        "issue 5",
    ),
    "http:keep-alive": Requirement(
        "A stream with nothing to say sends a comment after a third of what the most impatient "
        "proxy allows, before its first event as well.",
        "issue 5",
    ),
    "http:metrics": Requirement(
        "Prometheus is told the same counts, latencies and breaker states as health is.", "issue 5"
    ),
    "http:shed": Requirement(
        "A door that an operator has closed answers 503 at once, with the reason and when to come "
        "back.",
        "issue 5",
    ),
    "http:slow-reader": Requirement(
        "A stream whose client does not read is ended, and the work for it as well.", "issue 5"
    ),
    "http:survives": Requirement(
        "Whatever bytes come over a connection, the door answers the next one.", "issue 5"
    ),
}
