"""Lists what the page at `/` and what feeds it promise; in the order of the ids."""

from tests.ledger.entry import Requirement

PAGE: dict[str, Requirement] = {
    "breaker:by-order": Requirement(
        "An operator holds the breaker of any dependency of any hop open or closed for as long as "
        "they say, or resets it; it is announced, and forgotten by a restart.",
        "issue 5",
    ),
    "breaker:only-by-operators": Requirement(
        "A hop takes such an order with the operator's key, or, having none, where only its own "
        "machine can reach it; an inner hop without the file of the key takes none.",
        "issue 5",
    ),
}
"""By id, as in tests/requirements.py."""
