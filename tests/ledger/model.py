"""Lists what the model hop and those that call it promise; in the order of the ids."""

from tests.ledger.entry import Requirement

MODEL: dict[str, Requirement] = {
    "compression:counted-by-the-backup": Requirement(
        "A compressed conversation fits by the backup's own count, or says that it was estimated.",
        "design 7, issue 4",
    ),
    "compression:estimate": Requirement(
        "What a conversation costs to read is never estimated below DeepSeek's own count, and for "
        "plain prose of English and Chinese at most a quarter or so above it.",
        "issue 4",
    ),
    "compression:fits": Requirement(
        "Whatever the conversation and its language, the result fits the window, or one typed "
        "error says what is needed; the same conversation gives the same result.",
        "design 7, issue 4",
    ),
    "compression:keeps-facts": Requirement(
        "Numbers, dates, money, ids and names of rounds that are left out stay while there is "
        "room for them.",
        "design 7, issue 4",
    ),
    "compression:off-the-loop": Requirement(
        "A long conversation is compressed beside the event loop, inside its caller's time, and a "
        "cancel leaves at once.",
        "issue 4",
    ),
    "compression:reasoning": Requirement(
        "Reasoning goes back to the vendor that wrote it, with its tool calls, and to no other.",
        "design 7, issue 4",
    ),
    "compression:whole-rounds": Requirement(
        "Compression leaves out whole rounds, the oldest, never one of the last three, and never "
        "parts a tool call from its result.",
        "design 7, issue 4",
    ),
}
