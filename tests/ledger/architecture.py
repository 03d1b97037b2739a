"""Lists what holds of the source itself; in the order of the ids."""

from tests.ledger.entry import Requirement

ARCHITECTURE: dict[str, Requirement] = {
    "architecture:banned-calls": Requirement(
        "Time, chance and the environment are read in one file each and given to all others.",
        "style 1",
    ),
    "architecture:code-size": Requirement(
        "A file fits in 400 lines and a function in 60.",
        "style 1",
    ),
    "architecture:import-direction": Requirement(
        "Imports run one way: sixhop, runtime, rooms, gateway; rooms do not know each other, "
        "and policies know neither the transport nor each other.",
        "design 2",
    ),
    "architecture:owned-tasks": Requirement(
        "Every task that is started is kept by something that ends it.",
        "style 1",
    ),
    "architecture:packages-are-docstrings": Requirement(
        "An __init__.py says what the package holds and runs nothing.",
        "style 1",
    ),
    "architecture:proto-packages": Requirement(
        "A proto's folder, its package and its Python module are one path.",
        "style 3",
    ),
    "architecture:reasoned-excepts": Requirement(
        "Whoever catches every exception says why on the same line.",
        "style 1",
    ),
    "architecture:topology-is-folders": Requirement(
        "The call graph, the folders, the processes and the protos name the same hops.",
        "design 2",
    ),
}
