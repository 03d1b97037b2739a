"""Lists what the client of the model's provider promises; in the order of the ids."""

from tests.ledger.entry import Requirement

PROVIDER: dict[str, Requirement] = {
    "model:attempts-do-not-multiply": Requirement(
        "However often hops repeat, a provider sees at most two attempts of one generation, and "
        "one while it is silent.",
        "issue 4",
    ),
    "model:counts-tokens": Requirement(
        "A prompt's tokens are counted by a tokenizer of the model, or the count says that it is "
        "an estimate.",
        "issue 4",
    ),
    "model:describes-itself": Requirement(
        "A model tells its window, its limits and what it can do, as the table of dialects and the "
        "settings say.",
        "issue 4",
    ),
    "model:hopeless-provider-is-left": Requirement(
        "A provider that refuses the key or has no balance left is asked once, and who comes after "
        "is told at once what to correct.",
        "issue 4",
    ),
    "model:is-listed": Requirement(
        "A model that its provider does not have is refused at the start, with those that it has; "
        "a provider that cannot say keeps nobody from starting.",
        "issue 4",
    ),
    "model:no-pretence": Requirement(
        "What a model cannot do, tools or going on from an answer, is refused and not pretended, "
        "and no provider gets a field that it does not know.",
        "issue 4",
    ),
    "model:refusals-are-not-resent": Requirement(
        "A prompt that a provider refuses, for its length or its content, is never sent to it "
        "again as it was.",
        "issue 4",
    ),
    "model:retry-after-is-honoured": Requirement(
        "The wait that a provider asks for is made exactly, or the failure is told at once when "
        "the wait does not fit.",
        "issue 4",
    ),
    "model:tool-calls-are-whole": Requirement(
        "Tool calls are joined from their fragments, given whole and as the model wrote them, or "
        "are an error.",
        "issue 4",
    ),
}
