"""Maps what aiohttp raises to the error of a provider that cannot be reached or was lost."""

from dataclasses import dataclass

import aiohttp

from services.model.backend import Provider
from services.model.refusal import Reason, failed
from services.runtime.errors import DependencyFailedError


@dataclass(frozen=True, slots=True)
class Fault:
    """Says what one exception means."""

    reason: Reason
    cause: str
    message: str


_LOST = Fault(Reason.CONNECTION_LOST, "connection_lost", "the connection to the provider was lost")
_UNREACHABLE = Fault(Reason.UNREACHABLE, "refused", "the provider cannot be reached; {hint}")
_TLS = Fault(
    Reason.UNREACHABLE, "tls", "the provider's certificate or its TLS is not as it must be"
)
_MALFORMED = Fault(Reason.PROTOCOL_ERROR, "bad_http", "the provider's answer is no valid HTTP")

FAULTS: dict[type[aiohttp.ClientError], Fault] = {
    aiohttp.ClientConnectorDNSError: Fault(
        Reason.UNREACHABLE, "dns", "the provider's host name is unknown"
    ),
    aiohttp.ClientConnectorCertificateError: _TLS,
    aiohttp.ClientConnectorSSLError: _TLS,
    aiohttp.ClientSSLError: _TLS,
    aiohttp.ServerFingerprintMismatch: _TLS,
    aiohttp.ConnectionTimeoutError: Fault(
        Reason.UNREACHABLE, "connect_timeout", "the provider does not take connections in time"
    ),
    aiohttp.ClientConnectorError: _UNREACHABLE,
    aiohttp.InvalidURL: _UNREACHABLE,
    aiohttp.NonHttpUrlClientError: _UNREACHABLE,
    aiohttp.ClientConnectionError: _LOST,
    aiohttp.ClientPayloadError: _LOST,
    aiohttp.ClientResponseError: _MALFORMED,
    aiohttp.ClientError: _LOST,
}
"""The one table; the most specific class counts."""


def fault(error: aiohttp.ClientError, provider: Provider) -> DependencyFailedError:
    """Return the error of this hop for one of aiohttp's."""
    found = _most_specific(type(error))
    message = found.message.format(hint=provider.unreachable_hint)
    detail = type(error).__name__
    if isinstance(error, aiohttp.ClientConnectorError):
        detail = f"{error.host}:{error.port}: {error.os_error}"
    return failed(found.reason, found.cause, f"{message} ({detail})")


def _most_specific(kind: type[BaseException]) -> Fault:
    for base in kind.__mro__:
        if base in FAULTS:
            return FAULTS[base]
    return _LOST
