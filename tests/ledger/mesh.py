"""Lists what is promised to those who run the suite in a mesh; in the order of the ids."""

from tests.ledger.entry import Requirement

MESH: dict[str, Requirement] = {
    "mesh:translated-or-refused": Requirement(
        "What the tests make of our Istio objects is what istiod makes of them, and a field that "
        "they do not know is refused.",
        "issue 6",
    ),
}
