"""Lists what is promised to those who run the suite in a mesh; in the order of the ids."""

from tests.ledger.entry import Requirement

MESH: dict[str, Requirement] = {
    "mesh:deadlines-intact": Requirement(
        "Through sidecars no deadline grows, a call without one gets its route's, and no hop is "
        "given more than the ladder allows.",
        "issue 6",
    ),
    "mesh:dying-streams-leave": Requirement(
        "A pod whose streams die by its own fault three times in a row is not ready a second "
        "later, and comes back.",
        "issue 6",
    ),
    "mesh:edges-alone": Requirement(
        "A sidecar lets in whom the call graph lets call, and nobody else.",
        "issue 6",
    ),
    "mesh:parts-apart": Requirement(
        "Where a tier is split, each group of tools is executed by the pods that are meant for it.",
        "issue 6",
    ),
    "mesh:restarts-unnoticed": Requirement(
        "A rolling restart of every tier fails no call; pods that are killed cost one in a hundred "
        "at most.",
        "issue 6",
    ),
    "mesh:sick-pod-goes": Requirement(
        "Every sidecar that calls a sick pod ejects it within ten failing calls; one that hangs, "
        "or whose streams fail, leaves by its readiness. Clients are answered meanwhile.",
        "issue 6",
    ),
    "mesh:translated-or-refused": Requirement(
        "What the tests make of our Istio objects is what istiod makes of them, and a field that "
        "they do not know is refused.",
        "issue 6",
    ),
    "mesh:well-pods-stay": Requirement(
        "Whatever fails around it, no healthy pod is ejected: not for a sick dependency, an "
        "outage, too many calls, or callers in a hurry.",
        "issue 6",
    ),
}
