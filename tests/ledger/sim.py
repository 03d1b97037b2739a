"""Lists what the simulated provider promises; in the order of the ids."""

from tests.ledger.entry import Requirement

SIM: dict[str, Requirement] = {
    "model-sim:client-gone": Requirement(
        "The simulator notices a client that leaves in every phase, frees its slot, and counts "
        "what it made in vain.",
        "issue 4",
    ),
    "model-sim:documented": Requirement(
        "Every fault and every knob of the simulator is in its documentation, as the code says it.",
        "issue 4",
    ),
    "model-sim:faults-on-the-wire": Requirement(
        "Every fault of the simulator shows on the wire as its name says, in streams and in "
        "answers in one.",
        "issue 4",
    ),
    "model-sim:openai-sdk": Requirement(
        "The simulator's good answers and refusals are what OpenAI's own SDK takes for such.",
        "issue 4",
    ),
    "model-sim:queue": Requirement(
        "More requests than the simulator works on wait in order, kept alive as DeepSeek does it, "
        "or are refused.",
        "issue 4",
    ),
    "model-sim:replays": Requirement(
        "The same seed and requests give the same bytes and the same faults.",
        "issue 4",
    ),
    "model-sim:steered-and-seen": Requirement(
        "The simulator can be asked what it saw and told what to do while it runs, and refuses "
        "what it cannot read with a reason.",
        "issue 4",
    ),
    "model-sim:timeline": Requirement(
        "A script takes the simulated provider down and brings it back.",
        "issue 4",
    ),
    "model-sim:verb": Requirement(
        "`sixhop model-sim` runs it, tells how to use it, and grades the client when it stops.",
        "issue 4",
    ),
}
