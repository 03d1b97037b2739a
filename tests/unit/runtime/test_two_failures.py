"""Holds the error of two models that failed to what each of them did."""

import pytest

from services.runtime.errors import CircuitOpenError, Origin, SixhopError
from services.runtime.failover_stream import CUT
from services.runtime.generation import ModelCard
from services.runtime.status import to_status
from tests.requirements import requirement
from tests.unit.runtime.two_models import Takes, failed, pair

PREFILLING = ModelCard(name="small", window_tokens=8192, max_output_tokens=512, prefill=True)


@requirement("failover:original-error", "failover:both-are-told")
@pytest.mark.parametrize("second", [[failed("UNREACHABLE", hop="llm")], ["a sm", failed()]])
async def test_when_both_fail_the_first_ones_error_is_told_with_what_the_second_did(
    second: list[object],
) -> None:
    error = failed("PROVIDER_ERROR", hop="llm")
    both = pair([error], second)  # type: ignore[arg-type]

    with pytest.raises(SixhopError) as caught:
        await both.write()

    assert caught.value is error
    assert error.origin == Origin("llm", code="DEADLINE_EXCEEDED", reason="PROVIDER_ERROR")
    told = second[-1]
    assert isinstance(told, SixhopError)
    assert told.origin is not None
    assert str(error) == error.message
    assert error.message == f"it failed: PROVIDER_ERROR; model_backup failed as well: {told}"
    assert error.details == {
        "backupHop": told.origin.hop,
        "backupCode": "DEADLINE_EXCEEDED",
        "backupReason": told.origin.reason,
        "backupProblem": told.message,
    }
    assert len(both.switches) == len(second) - 1, "a model that says nothing is not announced"
    assert both.open_count == 0


@requirement("failover:both-are-told")
async def test_a_second_model_that_is_refused_by_this_hop_is_told_by_its_reason() -> None:
    both = pair([failed()], [CircuitOpenError("model_backup is known to be sick")])

    with pytest.raises(SixhopError) as caught:
        await both.write()

    assert caught.value.message.endswith("failed as well: model_backup is known to be sick")
    told = caught.value.details
    assert (told["backupHop"], told["backupReason"]) == ("model_backup", "CIRCUIT_OPEN")
    assert told["backupCode"] == "ABORTED"


@requirement("failover:both-are-told")
async def test_of_two_long_stories_both_beginnings_are_told() -> None:
    first, second = failed(), failed("PROVIDER_ERROR", hop="llm")
    first.message, second.message = "首" * 400, "次" * 400
    both = pair([first], [second])

    with pytest.raises(SixhopError) as caught:
        await both.write()

    sent = to_status(caught.value, hop="domain", pod="", remaining_s=1.0, wait_s=0.0).message
    before, _, after = sent.partition("…; model_backup failed as well: ")
    assert set(before) == {"首"}
    assert set(after) == set("次…")
    assert min(len(before), len(after)) > 50


@requirement("failover:both-are-told")
async def test_why_the_second_model_was_not_asked_is_told() -> None:
    both = pair([Takes(6.8), failed()])

    with pytest.raises(SixhopError) as caught:
        await both.write(has_s=7.0)

    why = "0.20 s are left and its first word takes 0.25 s"
    assert caught.value.message.endswith(f"; model_backup was not asked: {why}")
    assert caught.value.details == {"backupProblem": f"was not asked: {why}"}


@requirement("failover:both-are-told")
async def test_live_text_that_both_leave_cut_says_so() -> None:
    both = pair(["half", failed("CONNECTION_LOST")], [failed("UNREACHABLE")])
    both.backup.card = PREFILLING

    with pytest.raises(SixhopError) as caught:
        await both.write(live=True)

    assert caught.value.cause == CUT
    assert caught.value.origin is not None
    assert caught.value.origin.reason == "CONNECTION_LOST"
    assert caught.value.message.endswith("model_backup failed as well: it failed: UNREACHABLE")
    assert caught.value.details["backupReason"] == "UNREACHABLE"
