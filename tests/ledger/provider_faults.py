"""Lists what runs promise whose provider fails; in the order of the ids."""

from tests.ledger.entry import Requirement

PROVIDER_FAULTS: dict[str, Requirement] = {
    "faults:every-one": Requirement(
        "Whatever a provider does, whoever asks is given the whole answer of one model, which is "
        "named, or an error that says what happened, and is given it before the deadline; no text "
        "is cut unsaid or made of two answers.",
        "issue 4",
    ),
    "faults:few-attempts": Requirement(
        "A provider sees two attempts at most, one when it was silent or had begun to write, and "
        "has nothing to charge the suite with.",
        "issue 4",
    ),
    "faults:silence-in-time": Requirement(
        "Of 30 s a silent provider gets 6 s at most, and the second model's whole answer is there "
        "before 11 s; once the silence is known, nobody waits for it.",
        "issue 4",
    ),
}
"""By id, as in tests/requirements.py."""
