"""Carries the identity of a run in metadata, and completes it at the edge."""

import os
import re
from collections.abc import Iterable

from services.runtime.call import Criticality, Identity

RUN_ID_KEY = "x-sixhop-run-id"
REQUEST_ID_KEY = "x-request-id"
TENANT_KEY = "x-sixhop-tenant"
CRITICALITY_KEY = "x-sixhop-criticality"
TRACEPARENT_KEY = "traceparent"

CREDENTIAL_KEY = "authorization"
"""What a client shows to be known by: `Bearer` and a key, or a token."""

REPORTS_WANTED_KEY = "x-sixhop-reports"
"""`1` asks for reports of every hop with an answer that is no error."""

_CRITICALITIES = dict(Criticality.__members__)
_CRITICAL = Criticality.CRITICAL
_TRACEPARENT = re.compile(r"00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_TRACE = re.compile(r"[0-9a-f]{32}")
_TRACE_ID = slice(3, 35)
"""Where the name of the trace stands in a traceparent."""
_ID = re.compile(r"[\x21-\x7e]{1,128}")
_SEGMENT = re.compile(r"(?!\.{1,2}$)[\x21-\x2e\x30-\x7e]{1,128}")
"""An id that can stand between two slashes of an address, which some cannot even escaped."""


def read_identity(metadata: Iterable[tuple[str, str | bytes]]) -> Identity:
    """Return the identity that came with a call; what is missing stays empty.

    Inside the mesh only the gateway may say who is who, and it has looked at what came from
    outside (`edge_identity`); here it is taken as it is.
    """
    # Keys that end in -bin have bytes, and none of ours does.
    found: dict[str, str] = dict(metadata)  # type: ignore[arg-type]
    traceparent = found.get(TRACEPARENT_KEY, "")
    # Without a name of its own a run has its trace's.
    run_id = found.get(RUN_ID_KEY) or traceparent[_TRACE_ID]
    read = (
        run_id,
        found.get(REQUEST_ID_KEY, run_id),
        found.get(TENANT_KEY, ""),
        _CRITICALITIES.get(found.get(CRITICALITY_KEY, ""), _CRITICAL),
        traceparent,
        found.get(REPORTS_WANTED_KEY) == "1",
    )
    # What the constructor of a named tuple does: every call comes here.
    return tuple.__new__(Identity, read)


def read_credential(metadata: Iterable[tuple[str, str | bytes]]) -> str:
    """Return what came to be known by; empty when nothing did.

    Several are joined as HTTP joins them: together they are no credential of anybody.
    """
    pairs = list(metadata)
    # An open door is shown none as a rule, and every call comes here.
    if CREDENTIAL_KEY not in dict(pairs):
        return ""
    found = [value for key, value in pairs if key == CREDENTIAL_KEY and isinstance(value, str)]
    return ", ".join(found)


def write_identity(identity: Identity) -> list[tuple[str, str]]:
    """Return the identity as metadata of a call.

    What is empty, or what its reader takes for granted, is left out: every header costs each hop
    a hundredth of its CPU.
    """
    run_id, request_id, tenant, criticality, traceparent, wants_reports = identity
    pairs: list[tuple[str, str]] = []
    if run_id != traceparent[_TRACE_ID]:
        pairs.append((RUN_ID_KEY, run_id))
    if request_id != run_id:
        pairs.append((REQUEST_ID_KEY, request_id))
    if tenant:
        pairs.append((TENANT_KEY, tenant))
    if criticality is not _CRITICAL:
        pairs.append((CRITICALITY_KEY, criticality.name))
    if traceparent:
        pairs.append((TRACEPARENT_KEY, traceparent))
    if wants_reports:
        pairs.append((REPORTS_WANTED_KEY, "1"))
    return pairs


def well_formed(name: str) -> bool:
    """Tell whether a client's name for a request is kept."""
    return _ID.fullmatch(name) is not None


def names_run(name: str) -> bool:
    """Tell whether a client's name for a run is kept: it must do for an address, too."""
    return _SEGMENT.fullmatch(name) is not None


def edge_identity(identity: Identity) -> Identity:
    """Return what the edge makes of an identity that a client sent.

    Ids are kept when they are well formed, else made: a run has the name of its trace, unless
    that came from outside, where one trace may hold several runs. The tenant is dropped: only a
    key may say whose run it is.
    """
    came, request_id, _, criticality, traceparent, wants_reports = identity
    run_id = came
    if run_id == traceparent[_TRACE_ID] or not names_run(run_id):
        run_id = os.urandom(16).hex()
    if not _TRACEPARENT.fullmatch(traceparent):
        trace_id = run_id if _TRACE.fullmatch(run_id) else os.urandom(16).hex()
        traceparent = f"00-{trace_id}-{os.urandom(8).hex()}-00"
    if request_id == came or not well_formed(request_id):
        request_id = run_id
    # As in read_identity.
    made = (run_id, request_id, "", criticality, traceparent, wants_reports)
    return tuple.__new__(Identity, made)
