"""Lists what clients that others write are promised; in the order of the ids."""

from tests.ledger.entry import Requirement

STRANGERS: dict[str, Requirement] = {
    "strangers:examples": Requirement(
        "The example clients in Python, TypeScript, Go and Java are built from the protos by the "
        "commands of the documentation, and ask with a deadline, stream, and read errors and "
        "degraded parts of a running suite.",
        "issue 5",
    ),
    "strangers:keys": Requirement(
        "The example clients send a key where the environment has one.",
        "issue 5",
    ),
    "strangers:nothing-breaks": Requirement(
        "A change of the protos that would break a client generated from the last promised ones is "
        "refused at every check; an addition passes.",
        "issue 5",
    ),
    "strangers:quotes": Requirement(
        "What the documentation quotes of the example clients is what stands in their files.",
        "issue 5",
    ),
    "strangers:reflection": Requirement(
        "A client that knows no protos lists the gateway's methods and asks it, by either version "
        "of reflection.",
        "issue 5",
    ),
}
"""By id, as in tests/requirements.py."""
