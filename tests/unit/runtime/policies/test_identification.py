"""Holds the edge to knowing whose call it is, and to what that tenant may have."""

import pytest

from services.runtime.call import Criticality, Identity, Inbound
from services.runtime.clock import ManualClock
from services.runtime.credential import Credential
from services.runtime.errors import UnauthenticatedError
from services.runtime.guarding import Guards
from services.runtime.policies.deadline import margin_s
from services.runtime.policies.identification import Identification
from services.runtime.tenants import Tenants, read_tenants
from tests.requirements import requirement
from tests.unit.runtime.policies.samples import inbound

TENANTS = read_tenants(
    {
        "default": {"max_deadline_s": 60},
        "acme": {"max_criticality": "SHEDDABLE_PLUS", "max_deadline_s": 5},
    }
)


class Asking:
    """Knows one credential."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, float]] = []

    async def __call__(self, credential: str, within_s: float) -> str:
        """Return the tenant."""
        self.asked.append((credential, within_s))
        if credential != "Bearer right":
            raise UnauthenticatedError("no", cause="unknown_key")
        return "acme"


async def arrived(
    remaining_s: float = 30.0,
    *,
    level: Criticality = Criticality.CRITICAL,
    credential: str = "Bearer right",
    asking: Asking | None = None,
    tenants: Tenants = TENANTS,
) -> Inbound:
    """Return a call that was let in."""
    call = inbound(remaining_s, hop="gateway")
    call.identity = Identity(run_id="r", tenant="somebody", criticality=level)
    call.credential = Credential(credential)
    guard = Identification(tenants, ManualClock(call.arrived_at), margin_s)
    guard.authenticate = asking
    waiting = Guards([guard]).enter(call)
    if waiting is not None:
        await waiting
    return call


@requirement("tenants:identified")
async def test_a_call_belongs_to_the_tenant_of_its_credential_and_to_no_other() -> None:
    asking = Asking()

    call = await arrived(asking=asking)

    assert call.identity.tenant == "acme"
    assert call.identity.run_id == "r"
    assert call.limits is TENANTS.named["acme"]
    ((credential, within_s),) = asking.asked
    assert credential == "Bearer right"
    assert within_s == pytest.approx(29.0)


@requirement("tenants:keys-never-logged")
async def test_a_credential_is_not_kept_once_it_has_been_looked_at() -> None:
    assert (await arrived(asking=Asking())).credential is None
    assert (await arrived()).credential is None


@requirement("tenants:identified")
async def test_whoever_is_not_known_does_not_come_in() -> None:
    with pytest.raises(UnauthenticatedError):
        await arrived(credential="Bearer wrong", asking=Asking())


async def test_where_nobody_is_asked_everybody_is_nobody_with_the_defaults() -> None:
    call = await arrived(100.0, credential="whatever")

    assert call.identity.tenant == ""
    assert call.limits is TENANTS.default
    assert call.time_remaining_on_arrival_s == 60.0


@requirement("tenants:ceilings")
@pytest.mark.parametrize("level", list(Criticality))
async def test_nobody_is_more_critical_than_its_tenant_may_be(level: Criticality) -> None:
    call = await arrived(level=level, asking=Asking())

    assert call.identity.criticality == min(level, Criticality.SHEDDABLE_PLUS)


@requirement("tenants:ceilings")
@pytest.mark.parametrize(("asked_s", "given_s"), [(30.0, 5.0), (5.0, 5.0), (2.0, 2.0)])
async def test_a_deadline_is_cut_to_the_longest_of_the_tenant(
    asked_s: float, given_s: float
) -> None:
    call = await arrived(asked_s, asking=Asking())

    assert call.time_remaining_on_arrival_s == pytest.approx(given_s)
    assert call.margin_s == margin_s(given_s)


async def test_other_limits_hold_from_the_next_call_on() -> None:
    guard = Identification(TENANTS, ManualClock(), margin_s)
    guard.reconfigure(read_tenants({"default": {"max_deadline_s": 7}}))
    call = inbound(30.0, hop="gateway")

    guard.before(call)

    assert call.time_remaining_on_arrival_s == 7.0
    assert (await guard.limits_of(Credential(), 1.0)).max_deadline_s == 7.0
