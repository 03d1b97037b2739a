"""Lists what is promised to those who run the suite in a cluster."""

from tests.ledger.entry import Requirement

CLUSTER: dict[str, Requirement] = {
    "cluster:parts-named": Requirement(
        "Each call says, where a mesh can read it, for which group of tools or which agent it is.",
        "issue 6",
    ),
    "cluster:parts-alone": Requirement(
        "Through a real Envoy with the routes that are shipped, each execution of a tool comes to "
        "the part of its group, and what is for no group to the rest.",
        "issue 6",
    ),
    "cluster:generated": Requirement(
        "What of the manifests repeats the configuration or the call graph is written from them, "
        "and `sixhop k8s render --check` shows what differs.",
        "issue 6",
    ),
    "cluster:image": Requirement(
        "The image is made of locked packages by steps that run, begins at a digest, runs as "
        "nobody in particular, and starts every hop with the configuration of the cluster.",
        "issue 6",
    ),
    "cluster:document": Requirement(
        "docs/kubernetes.md makes every secret, and names files and numbers that are there.",
        "issue 6",
    ),
    "cluster:metrics": Requirement(
        "Every hop tells Prometheus its state at a port of its own: pods are added by calls in "
        "flight.",
        "issue 6",
    ),
    "cluster:redis": Requirement(
        "The Redis of a cluster wants a password, and forgets what nobody has touched for longest.",
        "issue 6",
    ),
    "cluster:edges": Requirement(
        "The mesh and the network let each hop call those that the call graph names, and nobody "
        "else.",
        "issue 6",
    ),
    "cluster:validated": Requirement(
        "Everything that the overlays make is looked at before it is committed, and of each kind "
        "of error it is known who notices it.",
        "issue 6",
    ),
}
