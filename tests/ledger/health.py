"""Lists what load reports and the health board promise; in the order of the ids."""

from tests.ledger.entry import Requirement

HEALTH: dict[str, Requirement] = {
    "board:broken-tools": Requirement(
        "Routing says so when no replica can use a tool that the agent needs.",
        "issue 3",
    ),
    "board:comes-back": Requirement(
        "A replica that is well again gets its share of the runs back by a few probes.",
        "issue 3",
    ),
    "board:decision-is-told": Requirement(
        "Which replica and which model were chosen, and why, stands in the log and in the run's "
        "events.",
        "issue 3",
    ),
    "board:leaves-the-slow": Requirement(
        "Two seconds after a replica has become slow, nine of ten new runs go to the others, "
        "whether its runs end late or hang.",
        "issue 3",
    ),
    "board:model-route": Requirement(
        "Routing advises the backup model before anyone waits, when the primary would refuse or "
        "be late.",
        "design 6",
    ),
    "board:polls": Requirement(
        "Every replica is asked for its state twice a minute, one that is away every few seconds, "
        "and never twice at once.",
        "design 6",
    ),
    "board:shared": Requirement(
        "With Redis, what one routing process learns the others know a second later, and forget "
        "when it tells no more.",
        "design 6",
    ),
    "board:shared-away": Requirement(
        "Without Redis each board goes on alone after one warning, no run waits for it, and its "
        "return is told once.",
        "issue 3",
    ),
    "board:sick-get-probes": Requirement(
        "A replica that fails gets nothing but a probe now and then, and one that is away nothing "
        "until a poll finds it again.",
        "issue 3",
    ),
    "load:cheap": Requirement(
        "A process builds its load report ten times a second at most, and its callers read the "
        "same report once.",
        "issue 3",
    ),
    "load:estimates-heal": Requirement(
        "An estimate that nothing confirms any more refuses nobody, and admission by it never "
        "locks everybody out.",
        "issue 3",
    ),
    "load:orca-wire-form": Requirement(
        "A load report has the wire form of ORCA: gRPC's weighted round robin follows it.",
        "issue 3",
    ),
    "load:path-estimate": Requirement(
        "The path estimate is own work and the dependencies, each as often as it is called and as "
        "slow as it tells.",
        "issue 3",
    ),
    "load:travels": Requirement(
        "With the engine on, every answer tells balancers how busy the process is, and a caller "
        "that asks all that is known of it.",
        "issue 3",
    ),
    "testing:says-what-to-install": Requirement(
        "A test that needs a program which is not there fails and says what to install.",
        "issue 3",
    ),
}
