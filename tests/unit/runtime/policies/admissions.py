"""Makes calls for the tests of admission, and says which are let in."""

from services.runtime.call import Criticality, Identity, Inbound
from services.runtime.clock import Clock
from services.runtime.errors import BudgetTooSmallError, LoadShedError
from services.runtime.policies.admission import Admission
from tests.unit.runtime.policies.samples import inbound


def served(
    clock: Clock,
    level: Criticality = Criticality.CRITICAL_PLUS,
    tenant: str = "a",
    remaining_s: float = 30.0,
) -> Inbound:
    """Return a call that arrives now."""
    call = inbound(remaining_s, arrived_at=clock.now())
    call.identity = Identity(tenant=tenant, criticality=level)
    return call


async def admitted(admission: Admission, call: Inbound) -> bool:
    """Say whether a call is let in; it ends at once."""
    try:
        async with admission(call):
            return True
    except (LoadShedError, BudgetTooSmallError):
        return False
