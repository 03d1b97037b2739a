"""Lists what is promised to those who put a proxy before the gateway."""

from tests.ledger.entry import Requirement

EDGE: dict[str, Requirement] = {
    "edge:deadlines-intact": Requirement(
        "Deadlines come through nginx and Envoy as they are shipped here, and none grows.",
        "issue 5",
    ),
    "edge:no-orders": Requirement(
        "nginx and Envoy as they are shipped here let no order through, nor a look at a process, "
        "however its path is written.",
        "issue 5",
    ),
    "edge:streams-unbuffered": Requirement(
        "Through nginx and Envoy a stream arrives while it is written, and a reader that leaves "
        "ends the work.",
        "issue 5",
    ),
}
