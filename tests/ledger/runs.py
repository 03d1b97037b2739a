"""Lists what the book of recent runs promises; in the order of the ids."""

from tests.ledger.entry import Requirement

RUNS: dict[str, Requirement] = {
    "runs:bounded": Requirement(
        "What is kept of runs stays within a count, an age and a size, whatever the load; what "
        "goes is gone cleanly.",
        "issue 5",
    ),
    "runs:cancelled": Requirement(
        "A run is ended by its address, whichever door it came by: who waits for it has a typed "
        "error, and the provider has lost its connection within 250 ms.",
        "issue 5",
    ),
    "runs:every-door": Requirement(
        "Every run is kept, whichever door it came by and however it ended, with its events and "
        "with what each hop was given, used and had left.",
        "issue 5",
    ),
    "runs:events": Requirement(
        "The events of a run are there for any number of readers, from any of them on, while it "
        "lives and for five minutes after; what is missing is told.",
        "issue 5",
    ),
    "runs:events-are-the-proto": Requirement(
        "Every field of every event is written as JSON, by its name in the proto.",
        "issue 5",
    ),
    "runs:files": Requirement(
        "A file of a run has an address of its own, and nobody takes it for something else.",
        "issue 5",
    ),
    "runs:go-on": Requirement(
        "A run that was started goes on by itself until its own deadline, and is refused at once "
        "when it cannot begin.",
        "issue 5",
    ),
    "runs:looks-are-no-runs": Requirement(
        "Whoever looks at runs is asked who he is, and is neither admitted nor shed nor learned "
        "from.",
        "issue 5",
    ),
    "runs:never-in-the-way": Requirement(
        "Nothing that goes wrong with keeping a run ends or delays it.",
        "issue 5",
    ),
    "runs:one-end": Requirement(
        "A run has given its answer once it has told its end, which is the last that it tells; one "
        "that stops before, or goes on after it, has failed.",
        "design 5",
    ),
    "runs:one-of-a-name": Requirement(
        "While a run of a tenant is kept, no other one takes its name, whichever door it comes by: "
        "the second is refused, and the first stays as it is.",
        "issue 5",
    ),
    "runs:own-tenant": Requirement(
        "A tenant sees its own runs and nobody else's.",
        "issue 5",
    ),
    "runs:shared": Requirement(
        "Gateways that share a Redis find each other's runs, with events, answer and files; when "
        "it is away, runs go on and each gateway shows its own.",
        "issue 5",
    ),
    "runs:words-go": Requirement(
        "The words of a question are not kept, and those of an answer no longer than its client "
        "may come back for them, unless prompts may be kept.",
        "issue 5, design 9",
    ),
}
"""By id, as in tests/requirements.py."""
