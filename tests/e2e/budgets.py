"""Says how much of its time a hop may give to the next, as the design has it."""

from services.runtime.topology import require_edge

TOLERANCE_RATIO = 1.04
"""HPACK may send an earlier value again that is up to 3.6 % larger."""
TOLERANCE_S = 0.005


def least_margin_s(had_s: float) -> float:
    """Return what a hop keeps at least, as the design says and not as the code does."""
    return min(max(0.12 * had_s, 0.05), 1.0)


def allowed_s(caller: str, callee: str, caller_s: float) -> float:
    """Return the most that a callee may be given by a caller that had so much."""
    streaming = require_edge(caller, callee).streaming
    exact_s = caller_s - least_margin_s(caller_s) if streaming else 0.6 * caller_s
    return exact_s * TOLERANCE_RATIO + TOLERANCE_S
