"""Holds the table of faults to everything that aiohttp can raise."""

from collections.abc import Iterator

import aiohttp
import pytest
from aiohttp import client_exceptions

from services.model.backend import Provider
from services.model.faults import FAULTS, fault
from services.model.refusal import Reason


def all_kinds(kind: type[aiohttp.ClientError]) -> Iterator[type[aiohttp.ClientError]]:
    yield kind
    for child in kind.__subclasses__():
        if child.__module__.startswith("aiohttp"):
            yield from all_kinds(child)


PROVIDER = Provider(base_url="http://provider/v1", model="m")
REASONS = {
    aiohttp.ClientConnectorDNSError: Reason.UNREACHABLE,
    aiohttp.ClientConnectorError: Reason.UNREACHABLE,
    aiohttp.ClientConnectorCertificateError: Reason.UNREACHABLE,
    aiohttp.ClientConnectorSSLError: Reason.UNREACHABLE,
    aiohttp.ClientProxyConnectionError: Reason.UNREACHABLE,
    aiohttp.ClientSSLError: Reason.UNREACHABLE,
    aiohttp.ServerFingerprintMismatch: Reason.UNREACHABLE,
    aiohttp.ConnectionTimeoutError: Reason.UNREACHABLE,
    client_exceptions.UnixClientConnectorError: Reason.UNREACHABLE,
    aiohttp.InvalidURL: Reason.UNREACHABLE,
    aiohttp.ServerDisconnectedError: Reason.CONNECTION_LOST,
    aiohttp.ServerConnectionError: Reason.CONNECTION_LOST,
    aiohttp.ServerTimeoutError: Reason.CONNECTION_LOST,
    aiohttp.SocketTimeoutError: Reason.CONNECTION_LOST,
    aiohttp.ClientOSError: Reason.CONNECTION_LOST,
    aiohttp.ClientConnectionError: Reason.CONNECTION_LOST,
    aiohttp.ClientConnectionResetError: Reason.CONNECTION_LOST,
    aiohttp.ClientPayloadError: Reason.CONNECTION_LOST,
    aiohttp.ClientError: Reason.CONNECTION_LOST,
    aiohttp.ClientResponseError: Reason.PROTOCOL_ERROR,
    aiohttp.ContentTypeError: Reason.PROTOCOL_ERROR,
    aiohttp.ClientHttpProxyError: Reason.PROTOCOL_ERROR,
    aiohttp.WSServerHandshakeError: Reason.PROTOCOL_ERROR,
    aiohttp.TooManyRedirects: Reason.PROTOCOL_ERROR,
    aiohttp.InvalidUrlClientError: Reason.UNREACHABLE,
    aiohttp.NonHttpUrlClientError: Reason.UNREACHABLE,
    aiohttp.RedirectClientError: Reason.CONNECTION_LOST,
    aiohttp.NonHttpUrlRedirectClientError: Reason.UNREACHABLE,
    aiohttp.InvalidUrlRedirectClientError: Reason.UNREACHABLE,
    client_exceptions.UploadAbortedError: Reason.CONNECTION_LOST,
    aiohttp.WSMessageTypeError: Reason.CONNECTION_LOST,
}
"""What each of them means, said class by class, so that a new one is noticed."""


def test_every_exception_of_the_library_has_been_thought_of() -> None:
    unknown = [kind for kind in all_kinds(aiohttp.ClientError) if kind not in REASONS]

    assert not unknown


@pytest.mark.parametrize("kind", REASONS, ids=lambda kind: kind.__name__)
def test_each_exception_has_the_reason_that_it_was_given(kind: type[aiohttp.ClientError]) -> None:
    # Made without its constructor, because the constructors all want something else.
    error = kind.__new__(kind)
    if isinstance(error, aiohttp.ClientConnectorError):
        error._os_error = OSError(111, "refused")
        error._conn_key = type("Key", (), {"host": "provider", "port": 443})()

    found = fault(error, PROVIDER)

    assert found.origin is not None
    assert found.origin.reason == REASONS[kind]
    assert found.origin.hop == "llm"


def test_every_row_of_the_table_is_a_class_of_the_library() -> None:
    assert set(FAULTS) <= set(REASONS)
