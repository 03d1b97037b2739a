"""Holds the edge to looking once at what one request shows, and to looking again in time."""

import pytest

from services.runtime.clock import ManualClock
from services.runtime.credential import KNOWN_FOR_S, Credential
from services.runtime.errors import SelfUnavailableError, SixhopError, UnauthenticatedError
from services.runtime.policies.deadline import margin_s
from services.runtime.policies.identification import Identification
from services.runtime.tenants import read_tenants
from tests.requirements import requirement
from tests.unit.runtime.policies.samples import inbound

pytestmark = requirement("tenants:looked-at-once")


class Register:
    """Gives answers, one after the other, and counts how often it is asked."""

    def __init__(self, *answers: str | SixhopError) -> None:
        self._answers = iter(answers)
        self.asked_count = 0

    async def __call__(self, shown: str, within_s: float) -> str:
        """Return the next tenant, or raise the next error."""
        self.asked_count += 1
        answer = next(self._answers)
        if isinstance(answer, SixhopError):
            raise answer
        return answer


async def enter(edge: Identification, credential: Credential, clock: ManualClock) -> str:
    """Lead a call in, and return its tenant."""
    call = inbound(30.0, hop="gateway", arrived_at=clock.now())
    call.credential = credential
    waiting = edge.before(call)
    if waiting is not None:
        await waiting
    return call.identity.tenant


def edge_of(register: Register) -> tuple[Identification, ManualClock]:
    """Return what lets calls in, and its clock."""
    clock = ManualClock()
    edge = Identification(read_tenants({"acme": {"max_deadline_s": 5}}), clock, margin_s)
    edge.authenticate = register
    return edge, clock


async def test_who_is_known_before_the_body_is_read_is_not_asked_again_after_it() -> None:
    register = Register("acme")
    edge, clock = edge_of(register)
    credential = Credential("Bearer right")

    limits = await edge.limits_of(credential, 3.0)

    assert limits.max_deadline_s == 5
    assert await enter(edge, credential, clock) == "acme"
    assert register.asked_count == 1


async def test_who_is_refused_before_the_body_is_read_is_refused_after_it_for_the_same() -> None:
    register = Register(UnauthenticatedError("no", cause="unknown_key"))
    edge, clock = edge_of(register)
    credential = Credential("Bearer wrong")

    with pytest.raises(UnauthenticatedError) as first:
        await edge.limits_of(credential, 3.0)
    with pytest.raises(UnauthenticatedError) as second:
        await enter(edge, credential, clock)

    assert second.value is first.value
    assert register.asked_count == 1


async def test_a_body_that_comes_slowly_does_not_outlive_a_key() -> None:
    register = Register("acme", UnauthenticatedError("no", cause="revoked_key"))
    edge, clock = edge_of(register)
    credential = Credential("Bearer right")

    await edge.limits_of(credential, 3.0)
    clock.advance(KNOWN_FOR_S)

    with pytest.raises(UnauthenticatedError):
        await enter(edge, credential, clock)


async def test_an_issuer_that_was_away_is_asked_again() -> None:
    register = Register(SelfUnavailableError("away", cause="issuer"), "acme")
    edge, clock = edge_of(register)
    credential = Credential("Bearer right")

    with pytest.raises(SelfUnavailableError):
        await edge.limits_of(credential, 3.0)

    assert await enter(edge, credential, clock) == "acme"


async def test_each_request_is_looked_at_for_itself() -> None:
    register = Register("acme", "globex")
    edge, clock = edge_of(register)

    assert await enter(edge, Credential("Bearer a"), clock) == "acme"
    assert await enter(edge, Credential("Bearer b"), clock) == "globex"
