"""Lists what talks with a caller's own tools promise; in the order of the ids."""

from tests.ledger.entry import Requirement

CONVERSING: dict[str, Requirement] = {
    "conversing:agent": Requirement(
        "A question with tools, a history in its place, stops or a response format goes to "
        "an agent that converses, whatever its words are; any other agent refuses it.",
        "issue 5",
    ),
    "conversing:checks": Requirement(
        "Tools that no model could be offered, a choice that is none and options out of their "
        "range are refused at the door, by field and fix.",
        "issue 5",
    ),
    "conversing:deliveries": Requirement(
        "Tool calls come whole, after the text, once the model has ended well; buffered ones with "
        "the text, and what is void is void with its calls.",
        "issue 5",
    ),
    "conversing:failover": Requirement(
        "A model that fails while it writes a tool call is replaced by one that can do all that "
        "was asked; nobody who cannot is asked.",
        "issue 5",
    ),
    "conversing:length": Requirement(
        "A text that ends at its token limit says so by its finish reason and by what is missing, "
        "and no model is asked for more tokens than the caller wants.",
        "issue 5, DESIGN section 1",
    ),
    "conversing:one-rule": Requirement(
        "The door and the model hop hold a conversation and its options to the same rules.",
        "issue 5",
    ),
    "conversing:options": Requirement(
        "Sampling, seed, stops and response format reach the provider in its own dialect.",
        "issue 5",
    ),
    "conversing:refused": Requirement(
        "What a model cannot do is refused by field and setting, never left out in silence.",
        "issue 5",
    ),
    "conversing:system": Requirement(
        "A caller's system messages come after the agent's own rules, and those that it adds later "
        "stand where it has them; a model that takes them at the beginning only has them there.",
        "issue 5",
    ),
    "conversing:tools": Requirement(
        "A caller's tools reach the model; what it asks for comes back whole, and the talk goes on "
        "from the results without a new question.",
        "issue 5",
    ),
    "run:one-language": Requirement(
        "What a run tells people is in its language, and what a hop or a provider said in another "
        "one is marked as a quotation.",
        "issue 4",
    ),
    "run:whose-limit": Requirement(
        "A text that was cut off says at which limit of tokens, and who set it: who asked, the "
        "settings, the time that was left, or the provider.",
        "issue 4",
    ),
}
