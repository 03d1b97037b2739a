"""Lists what `sixhop plan` promises; in the order of the ids."""

from tests.ledger.entry import Requirement

PLAN: dict[str, Requirement] = {
    "plan:ejection": Requirement(
        "A plan says how many calls a sick pod costs until all sidecars have ejected it and how "
        "long that takes, within 15 % of a simulation.",
        "issue 6",
    ),
    "plan:formulas": Requirement(
        "The formulas of a plan give what tables and exact solutions give.",
        "issue 6",
    ),
    "plan:in-flight": Requirement(
        "A plan says how many calls are in flight in each tier, within 15 % of a simulation.",
        "issue 6",
    ),
    "plan:page": Requirement(
        "What the page about scale shows is what `sixhop plan` prints.",
        "issue 6",
    ),
    "plan:permits": Requirement(
        "A plan says how many permits are in use in all but one of a hundred moments, within 15 % "
        "of a simulation, and asks for no fewer.",
        "issue 6",
    ),
    "plan:pods": Requirement(
        "A tier has the pods that its CPU and its calls in flight take, and one more; its HPA "
        "reaches from the average to what carries the peak while pods are ejected.",
        "issue 6",
    ),
    "plan:redis": Requirement(
        "A plan counts the commands of Redis, within 15 % of a simulation, and command by command "
        "as a real Redis does.",
        "issue 6",
    ),
    "plan:refuses": Requirement(
        "A traffic that cannot be read, or that the deadlines cannot hold, is refused with what to "
        "change.",
        "issue 6",
    ),
    "plan:shipped": Requirement(
        "A plan speaks of the autoscalers, the pools and the Redis that the manifests ship for the "
        "same configuration.",
        "issue 6",
    ),
    "plan:waits": Requirement(
        "A plan says how many calls wait for permits and how long, within 15 % of a simulation.",
        "issue 6",
    ),
}
