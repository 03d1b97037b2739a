"""Refuses requests that ask for more than their tenant may have."""

from services.runtime.call import Inbound
from services.runtime.errors import InvalidArgumentError, PermissionDeniedError
from services.runtime.tenants import DEFAULT, SECTION
from sixhop.gateway.v1 import gateway_pb2
from sixhop.type.v1 import run_pb2

TOO_LARGE = "too_large"
"""The cause of what is refused for its size, at every door."""


def check_allowance(
    inbound: Inbound, request: gateway_pb2.RunRequest | gateway_pb2.AskRequest
) -> None:
    """Refuse what the tenant of a call may not ask.

    Raises:
        PermissionDeniedError: the agent is not for this tenant.
        InvalidArgumentError: the request, or the question in it, is too large for this tenant.
    """
    limits, tenant = inbound.limits, inbound.identity.tenant
    if limits is None:
        return
    if request.agent:
        check_agent(inbound, request.agent)
    where = f"[{SECTION}.{tenant or DEFAULT}]"
    most = limits.max_body_bytes
    if most is not None and (size := request.ByteSize()) > most:
        raise InvalidArgumentError(
            "request",
            f"has {size:,} bytes, and this tenant's may have {most:,}; send less "
            f"(max_body_bytes in {where})",
            cause=TOO_LARGE,
        )
    most = limits.max_prompt_chars
    if most is not None and (chars := prompt_chars(request.question)) > most:
        raise InvalidArgumentError(
            "question",
            f"has {chars:,} characters with its history, and this tenant's may have {most:,}; "
            f"shorten it (max_prompt_chars in {where})",
            cause=TOO_LARGE,
        )


def check_agent(inbound: Inbound, agent: str) -> None:
    """Refuse an agent that is not for the tenant of a call.

    Raises:
        PermissionDeniedError: it is not; names those that are.
    """
    if inbound.limits is None or inbound.limits.agents is None:
        return
    if agent not in inbound.limits.agents:
        allowed = ", ".join(sorted(inbound.limits.agents)) or "none"
        raise PermissionDeniedError(
            f"this tenant may not ask the agent {agent[:100]!r}; allowed: {allowed} (agents in "
            f"[{SECTION}.{inbound.identity.tenant or DEFAULT}])",
            cause="agents",
        )


def prompt_chars(question: run_pb2.Question) -> int:
    """Return how long a question is with all that was said before it, in characters."""
    return len(question.text) + sum(len(message.content) for message in question.history)
