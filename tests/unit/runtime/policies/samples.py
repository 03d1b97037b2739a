"""Makes calls for the tests of policies."""

from services.runtime.call import Call, CallLimits, Inbound
from services.runtime.policies.deadline import margin_s
from tests.unit.runtime.fake_time import START


def limits(step_timeout_s: float = 5.0, **others: float | None) -> CallLimits:
    """Return the limits of calls to a dependency that needs nothing."""
    return CallLimits(step_timeout_s=step_timeout_s, **{"min_useful_s": 0.0} | others)  # type: ignore[arg-type]


def inbound(remaining_s: float, *, hop: str = "domain", arrived_at: float = START) -> Inbound:
    """Return a call that arrived with this much time, its margin set."""
    margin = margin_s(remaining_s)
    return Inbound(hop, "RunAgent", True, arrived_at, arrived_at + remaining_s, margin_s=margin)


def call(
    inbound: Inbound, limits: CallLimits, *, streaming: bool = False, last_chance: bool = False
) -> Call:
    """Return a call to the model that is made while another is served."""
    return Call("model", "Generate", streaming, inbound, limits, last_chance=last_chance)
