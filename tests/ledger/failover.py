"""Lists what failing over to another model promises; in the order of the ids."""

from tests.ledger.entry import Requirement

FAILOVER: dict[str, Requirement] = {
    "failover:advice": Requirement(
        "A model that routing knows to be away or late is not waited for, unless this hop's own "
        "breaker knows better.",
        "issue 4",
    ),
    "failover:at-once": Requirement(
        "While the first model's breaker is open, or no permit is free, the second is asked "
        "without any waiting.",
        "issue 4",
    ),
    "failover:before-content": Requirement(
        "A model that fails before its first text is replaced unseen, but for a `degraded` event "
        "that says why; the answer names the model that wrote it, with its usage.",
        "issue 4",
    ),
    "failover:both-are-told": Requirement(
        "An error of two models names what the first did, whose origin stays, and what the second "
        "did or why it was not asked; both reach the client.",
        "issue 4",
    ),
    "failover:buffered": Requirement(
        "Buffered text is sent once a model has ended it well; a model that fails in the middle "
        "is replaced unseen.",
        "issue 4",
    ),
    "failover:card": Requirement(
        "What the second model can is learned at the start and every half minute; while it is not "
        "known, a small model is assumed.",
        "issue 4",
    ),
    "failover:come-back": Requirement(
        "When to come back, as a provider or an open breaker says, reaches the client when nothing "
        "stands in, whatever the error.",
        "issue 4",
    ),
    "failover:deployment": Requirement(
        "A second model is a deployment of the model hop with its own section, address, limits, "
        "breaker and permits; it is there only where it is configured.",
        "issue 4",
    ),
    "failover:fits-the-time": Requirement(
        "The second model is not asked when its first word would come too late, or when nothing "
        "would be left for what comes after the text.",
        "issue 4",
    ),
    "failover:fits-the-window": Requirement(
        "The second model gets what fits its window, by its own count, and the event says what was "
        "left out.",
        "issue 4",
    ),
    "failover:live": Requirement(
        "Live text is gone on from where the second model can, and else ends in an error that says "
        "that the answer was cut.",
        "issue 4",
    ),
    "failover:nothing-left": Requirement(
        "Whoever leaves or is cancelled while a model is replaced leaves no stream open.",
        "issue 4",
    ),
    "failover:original-error": Requirement(
        "When no second model can help, the first one's error is told; what it does not cure is "
        "never sent to it.",
        "issue 4",
    ),
    "failover:outage": Requirement(
        "While the first model is away every question is answered, it sees a few attempts only, "
        "and it is back soon after it is well.",
        "issue 4",
    ),
    "failover:reasoning": Requirement(
        "A second model gets the reasoning before tool calls back where it wants that, as DeepSeek "
        "does, and none otherwise.",
        "issue 4",
    ),
    "failover:restarted": Requirement(
        "A model that fails in the middle of restartable text is replaced: `restarted`, then the "
        "second one's whole text, with what was said before it.",
        "issue 4",
    ),
    "failover:six-hops": Requirement(
        "A tool that has the model write fails over as an agent does, and the answer says so.",
        "issue 4",
    ),
    "gateway:history": Requirement(
        "What was said before a question reaches the model, and a history that no model could be "
        "given is refused at the door.",
        "issue 4",
    ),
}
"""By id, as in tests/requirements.py."""
