"""Holds requests to what their tenant may ask."""

import pytest

from gateway.allowance import check_agent, check_allowance
from services.runtime.call import Inbound
from services.runtime.errors import InvalidArgumentError, PermissionDeniedError
from services.runtime.tenants import TenantLimits
from sixhop.gateway.v1 import gateway_pb2
from sixhop.type.v1 import chat_pb2, run_pb2
from tests.requirements import requirement


def call(limits: TenantLimits | None) -> Inbound:
    """Return a call of acme."""
    inbound = Inbound("gateway", "Ask", False, 0.0, 10.0, limits=limits)
    inbound.identity = inbound.identity._replace(tenant="acme")
    return inbound


def asked(text: str = "Hello", agent: str = "", history: str = "") -> gateway_pb2.AskRequest:
    """Return a request."""
    said = [chat_pb2.ChatMessage(content=history)] if history else []
    question = run_pb2.Question(text=text, history=said)
    return gateway_pb2.AskRequest(question=question, agent=agent)


@requirement("tenants:sizes")
def test_a_prompt_is_as_long_as_all_that_is_read() -> None:
    limits = TenantLimits(max_prompt_chars=10)
    check_allowance(call(limits), asked("x" * 6, history="y" * 4))

    with pytest.raises(InvalidArgumentError, match=r"11 characters.*may have 10") as caught:
        check_allowance(call(limits), asked("x" * 6, history="y" * 5))

    assert caught.value.cause == "too_large"


@requirement("tenants:sizes")
def test_a_request_is_as_large_as_it_travels() -> None:
    request = asked("x" * 100)
    check_allowance(call(TenantLimits(max_body_bytes=request.ByteSize())), request)

    with pytest.raises(InvalidArgumentError, match=r"max_body_bytes in \[tenants\.acme\]"):
        check_allowance(call(TenantLimits(max_body_bytes=request.ByteSize() - 1)), request)


@requirement("tenants:agents-and-tools")
def test_an_agent_that_is_not_allowed_is_refused_when_it_is_asked_and_when_it_was_chosen() -> None:
    inbound = call(TenantLimits(agents=frozenset({"chat"})))
    check_allowance(inbound, asked(agent="chat"))
    check_allowance(inbound, asked())

    with pytest.raises(PermissionDeniedError, match="'orders'; allowed: chat"):
        check_allowance(inbound, asked(agent="orders"))
    with pytest.raises(PermissionDeniedError, match="'orders'; allowed: chat"):
        check_agent(inbound, "orders")


def test_without_limits_everything_goes() -> None:
    for limits in (None, TenantLimits()):
        check_allowance(call(limits), asked("x" * 10_000, agent="any"))
        check_agent(call(limits), "any")
