"""Holds what travels as metadata to what the edge lets in."""

import pytest

from services.runtime.call import Criticality, Identity
from services.runtime.identity import (
    CRITICALITY_KEY,
    REQUEST_ID_KEY,
    RUN_ID_KEY,
    TENANT_KEY,
    TRACEPARENT_KEY,
    edge_identity,
    read_credential,
    read_identity,
    write_identity,
)
from tests.requirements import requirement

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
WHOLE = Identity("run-1", "request-1", "acme", Criticality.SHEDDABLE_PLUS, TRACE, True)


def test_an_identity_comes_back_as_it_was_sent() -> None:
    assert read_identity(write_identity(WHOLE)) == WHOLE


def test_what_is_empty_or_taken_for_granted_is_not_sent() -> None:
    assert write_identity(Identity()) == []


def test_other_metadata_is_no_identity() -> None:
    assert read_identity((("sixhop-hops-bin", b"run"), ("user-agent", "grpc"))) == Identity()


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ([], ""),
        (["Bearer a"], "Bearer a"),
        (["Bearer a", "Bearer b"], "Bearer a, Bearer b"),
        (["", "Bearer a"], ", Bearer a"),
    ],
)
def test_several_credentials_are_joined_and_so_are_nobodys(sent: list[str], read: str) -> None:
    metadata = [("user-agent", "grpc"), *(("authorization", each) for each in sent)]

    assert read_credential(iter(metadata)) == read


@pytest.mark.parametrize("name", ["", "critical", "URGENT", "4"])
def test_an_unknown_criticality_is_the_usual_one(name: str) -> None:
    assert read_identity(((CRITICALITY_KEY, name),)).criticality is Criticality.CRITICAL


def test_the_edge_keeps_ids_that_are_well_formed() -> None:
    kept = edge_identity(WHOLE)

    assert (kept.run_id, kept.request_id, kept.traceparent) == ("run-1", "request-1", TRACE)
    assert kept.criticality is Criticality.SHEDDABLE_PLUS


def test_the_edge_believes_no_tenant() -> None:
    assert edge_identity(WHOLE).tenant == ""


@pytest.mark.parametrize("odd", ["", "with space", "newline\n", "x" * 129, "ключ", "a\0b"])
def test_the_edge_replaces_ids_that_are_not_well_formed(odd: str) -> None:
    sent = read_identity(((RUN_ID_KEY, odd), (REQUEST_ID_KEY, odd)))

    made = edge_identity(sent)

    assert made.run_id != odd
    assert len(made.run_id) == 32
    assert made.request_id == made.run_id


@requirement("runs:one-of-a-name")
@pytest.mark.parametrize("odd", ["a/b", "/", "/v1", ".", ".."])
def test_the_edge_replaces_names_of_runs_that_no_address_can_hold(odd: str) -> None:
    sent = read_identity(((RUN_ID_KEY, odd), (REQUEST_ID_KEY, odd + "?")))

    made = edge_identity(sent)

    assert len(made.run_id) == 32
    assert made.request_id == odd + "?"


@requirement("runs:one-of-a-name")
@pytest.mark.parametrize("name", ["a.b", "...", ".a", "100%", "a?b#c", "\\", "~!*'()"])
def test_the_edge_keeps_names_of_runs_that_an_address_can_hold_escaped(name: str) -> None:
    assert edge_identity(read_identity(((RUN_ID_KEY, name),))).run_id == name


@pytest.mark.parametrize(
    "odd", ["", "01" + TRACE[2:], TRACE.upper(), TRACE + "-extra", TRACE[:-1], "x" * 500]
)
def test_the_edge_begins_a_trace_where_none_came(odd: str) -> None:
    made = edge_identity(read_identity(((TRACEPARENT_KEY, odd),)))

    assert made.traceparent != odd
    assert len(made.traceparent) == 55
    assert made.traceparent.endswith("-00"), "nobody asked for it to be sampled"


def test_two_runs_get_two_ids() -> None:
    assert edge_identity(Identity()).run_id != edge_identity(Identity()).run_id


def test_the_tenant_that_the_edge_sets_reaches_the_hops_behind_it() -> None:
    assert read_identity(((TENANT_KEY, "acme"),)).tenant == "acme"


def test_a_run_that_nobody_named_has_the_name_of_its_trace_and_one_header() -> None:
    made = edge_identity(Identity())

    sent = write_identity(made)

    assert made.run_id == made.request_id == made.traceparent[3:35]
    assert [key for key, _ in sent] == [TRACEPARENT_KEY]
    assert read_identity(sent) == made


def test_two_runs_in_one_trace_from_outside_are_told_apart() -> None:
    came = read_identity(((TRACEPARENT_KEY, TRACE),))

    first, second = edge_identity(came), edge_identity(came)

    assert first.traceparent == second.traceparent == TRACE
    assert len({first.run_id, second.run_id, TRACE[3:35]}) == 3
    assert read_identity(write_identity(first)) == first


def test_a_clients_own_request_id_is_kept_beside_a_made_run_id() -> None:
    made = edge_identity(read_identity(((REQUEST_ID_KEY, "request-1"),)))

    assert made.request_id == "request-1"
    assert read_identity(write_identity(made)) == made
