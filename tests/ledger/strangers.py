"""Lists what clients that others write are promised; in the order of the ids."""

from tests.ledger.entry import Requirement

STRANGERS: dict[str, Requirement] = {
    "strangers:nothing-breaks": Requirement(
        "A change of the protos that would break a client generated from the last promised ones is "
        "refused at every check; an addition passes.",
        "issue 5",
    ),
}
"""By id, as in tests/requirements.py."""
