"""Says how full pods and their sidecars may be: what is rendered for a cluster and what is planned.

Both ask here, so that a plan speaks of the autoscalers and the pools that are shipped.
"""

import math

from services.runtime.call import Mode
from services.runtime.checks.tree import Tree

CPU_RATIO = 0.6
"""How busy the core of a pod is, at most: the event loop of a hop lags above it. Of one core, and
not of what the pod asks for: that says where it is put, and not when it is slow."""
BUSY_RATIO = 0.8
"""How full pods are, at most, of the calls that nobody is refused for."""
SPARE_RATIO = 1.25
"""How many more calls the mesh lets pass than the bulkheads of a caller: they refuse first."""


def inflight_target(tree: Tree) -> int:
    """Return the calls in flight per pod that autoscalers aim at; 0 where admission has no limit.

    Pods are added before anybody is refused. The lowest criticality is refused first, from its part
    of the limit on (`admission.levels.sheddable_ratio`), and the limit of a pod that has just come
    is the one that it begins with.
    """
    admission, limit = tree.policies.admission, tree.policies.limit
    if not tree.engine or admission.limit is not Mode.ENFORCE:
        return 0
    fixed = limit.algorithm == "fixed"
    most = limit.max_inflight if fixed else limit.gradient.initial_limit
    return max(1, math.floor(BUSY_RATIO * admission.levels.sheddable_ratio * most))


def requests_let_through(permits: int) -> int:
    """Return how many calls a sidecar lets pass from one caller that has so many permits."""
    return math.ceil(SPARE_RATIO * permits)
