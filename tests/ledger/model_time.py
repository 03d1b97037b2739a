"""Lists what the model hop promises about time; in the order of the ids."""

from tests.ledger.entry import Requirement

MODEL_TIME: dict[str, Requirement] = {
    "cancel:every-phase": Requirement(
        "A client that goes takes the provider's connection with it in every phase: connecting, "
        "waiting for a place, queued, before headers, at the first token, in the middle, before "
        "the end and between two attempts; over both kinds of call.",
        "issue 4",
    ),
    "health:page": Requirement(
        "`GET /v1/health` of the model hop tells whether it takes calls, how many more and how "
        "long they take, and `GET /livez` that it lives; no client of theirs can hold it up.",
        "design 6",
    ),
    "health:provider-is-asked": Requirement(
        "A provider with a health page is asked for it twice a minute, one question at a time and "
        "never for tokens, and what it tells bounds what the model hop says of itself; one without "
        "is left alone.",
        "issue 4",
    ),
    "heartbeat:extends-no-content-limit": Requirement(
        "A heartbeat keeps a caller waiting inside its limits and not beyond: it never extends the "
        "wait for the first content.",
        "design 3",
    ),
    "heartbeat:fits-every-limit": Requirement(
        "Heartbeats are so frequent that a third of every limit on silence has one, and the "
        "start-up check holds the settings to it.",
        "design 3",
    ),
    "heartbeat:is-no-answer": Requirement(
        "A silent callee that sends heartbeats is a silent callee: for retries, breakers, adaptive "
        "timeouts and estimates, at its callers and at itself.",
        "issue 4",
    ),
    "heartbeat:reaches-the-client": Requirement(
        "While a model is waited for, the client is told by which hop, for what, how long already "
        "and how long still.",
        "issue 4",
    ),
    "heartbeat:tells-what-is-waited-for": Requirement(
        "The model hop tells after 200 ms of silence whether it is queued, sees reasoning or hears "
        "nothing, and stops when the provider is given up; keep-alives of the provider are no "
        "content.",
        "design 7",
    ),
    "model:two-clocks": Requirement(
        "Signs of life of a provider never extend the wait for its content; when they stop, its "
        "connection is dead.",
        "design 7",
    ),
    "time-to-tokens:asked-for-shorter": Requirement(
        "An answer that would be cut by its deadline is asked for shorter, in the prompt's "
        "language and without a change to what the user wrote.",
        "design 7",
    ),
    "time-to-tokens:few-slow-refuse-nobody": Requirement(
        "A few slow answers refuse no short deadline that the usual answer keeps, and while none "
        "is served one is tried now and then.",
        "issue 4",
    ),
    "time-to-tokens:fits": Requirement(
        "max_tokens is what the measured time to the first token and the measured rate deliver in "
        "the time left; never above the caller's, and never below what is useful.",
        "design 7",
    ),
    "time-to-tokens:measured": Requirement(
        "The time to the first token and the rate of the provider are measured as it writes, and "
        "DescribeModel tells them.",
        "issue 4",
    ),
    "time-to-tokens:nothing-cut-without-knowledge": Requirement(
        "While too little is measured, no answer is shortened.",
        "issue 4",
    ),
}
