"""Reads who comes in over HTTP, and how long they wait."""

import re
from collections.abc import Mapping

from starlette.requests import Request

from gateway.desk import Arrival
from services.runtime.call import Criticality, Identity
from services.runtime.credential import Credential
from services.runtime.errors import InvalidArgumentError
from services.runtime.identity import CREDENTIAL_KEY, REQUEST_ID_KEY, TRACEPARENT_KEY

DEADLINE_MS_HEADER = "x-sixhop-deadline-ms"
ENVOY_TIMEOUT_HEADER = "x-envoy-expected-rq-timeout-ms"
GRPC_TIMEOUT_HEADER = "grpc-timeout"
CRITICALITY_HEADER = "x-sixhop-criticality"
RUN_ID_HEADER = "x-sixhop-run-id"

HEADERS = "headers"
"""Where a request keeps its headers, as they were read when it came."""
_CREDENTIAL = "credential"
"""Where it keeps what its sender shows."""
_CREDENTIAL_NAME = CREDENTIAL_KEY.encode()
_MILLISECONDS = re.compile(r"[0-9]{1,12}")
_GRPC_TIMEOUT = re.compile(r"([0-9]{1,8})([HMSmun])")
_UNITS_S: Mapping[str, float] = {"H": 3600, "M": 60, "S": 1, "m": 1e-3, "u": 1e-6, "n": 1e-9}


def headers_of(request: Request) -> dict[str, str]:
    """Return the headers of a request by their names in small letters; of several, the first."""
    headers: dict[str, str] = request.scope["state"][HEADERS]
    return headers


def arrival_of(headers: Mapping[str, str], credential: Credential) -> Arrival:
    """Return who sends these headers and shows this, and how long they wait.

    Of several headers that say how long, the shortest counts: somebody on the way gives up then.

    Raises:
        InvalidArgumentError: a header that says how long, or how important, is not understood.
    """
    level = headers.get(CRITICALITY_HEADER)
    return Arrival(
        remaining_s=_remaining_s(headers),
        identity=Identity(
            run_id=headers.get(RUN_ID_HEADER, ""),
            request_id=headers.get(REQUEST_ID_KEY, ""),
            criticality=_criticality(level) if level is not None else Criticality.CRITICAL,
            traceparent=headers.get(TRACEPARENT_KEY, ""),
            wants_reports=True,
        ),
        credential=credential,
    )


def credential_of(request: Request) -> Credential:
    """Return what the sender of a request shows to be known by: the same object each time.

    Raises:
        InvalidArgumentError: it shows several: whoever looks at the first and whoever looks at the
            last one would take it for different tenants.
    """
    state = request.scope["state"]
    known: Credential | None = state.get(_CREDENTIAL)
    if known is None:
        came = [text for name, text in request.scope["headers"] if name == _CREDENTIAL_NAME]
        if len(came) > 1:
            raise InvalidArgumentError(CREDENTIAL_KEY, "came more than once; send one")
        state[_CREDENTIAL] = known = Credential(came[0].decode("latin-1") if came else "")
    return known


def _remaining_s(headers: Mapping[str, str]) -> float | None:
    found: list[float] = []
    for header in (DEADLINE_MS_HEADER, ENVOY_TIMEOUT_HEADER):
        text = headers.get(header)
        # Envoy says 0 for a route without a timeout.
        if text is None or (header == ENVOY_TIMEOUT_HEADER and text == "0"):
            continue
        if not _MILLISECONDS.fullmatch(text):
            raise InvalidArgumentError(header, "must be whole milliseconds, such as 30000")
        found.append(int(text) / 1000)
    text = headers.get(GRPC_TIMEOUT_HEADER)
    if text is not None:
        matched = _GRPC_TIMEOUT.fullmatch(text)
        if matched is None:
            raise InvalidArgumentError(
                GRPC_TIMEOUT_HEADER, "must be digits and a unit of H, M, S, m, u or n, such as 30S"
            )
        found.append(int(matched[1]) * _UNITS_S[matched[2]])
    return min(found, default=None)


def _criticality(name: str) -> Criticality:
    try:
        return Criticality[name]
    except KeyError:
        raise InvalidArgumentError(
            CRITICALITY_HEADER, f"must be one of {', '.join(Criticality.__members__)}"
        ) from None
