"""Shows what a client is charged with, from logs that are written by hand."""

from typing import Any

import pytest

from services.model.sim.log import Record
from services.model.sim.verdict import verdict


def record(arrived_ms: float, ended_ms: float | None = None, **more: Any) -> Record:
    fields: dict[str, Any] = {
        "number": 1,
        "connection": 1,
        "request_id": "r-1",
        "attempt": 1,
        "model": "m",
        "stream": True,
        "tenant": "",
        "fault": "",
        "chosen_by": "",
        "digest": "d",
        "headers": {"x-request-id": "r-1"},
        "deadline_ms": None,
        "status": 200,
        "ended": "complete" if ended_ms is not None else "",
    }
    return Record(arrived_ms=arrived_ms, ended_ms=ended_ms, **{**fields, **more})


def charges(*records: Record, now_ms: float = 100_000.0) -> list[str]:
    judged = verdict(records, now_ms)
    return [charge.partition(":")[0] for each in judged["requests"] for charge in each["charges"]]


def refused(arrived_ms: float, status: int, **more: Any) -> Record:
    return record(arrived_ms, arrived_ms + 10, status=status, ended="refused", **more)


def test_a_client_that_does_nothing_wrong_is_sound() -> None:
    judged = verdict([refused(0, 503), record(250, 900)], 1000)

    assert judged["grade"].startswith("sound")
    assert judged["totals"]["max_attempts"] == 2
    assert judged["requests"][0]["spacing_s"] == (0.25,)


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 422])
def test_the_same_again_after_a_final_refusal_is_charged(status: int) -> None:
    assert charges(refused(0, status), record(2000, 2100)) == ["resent_unchanged"]


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 529])
def test_the_same_again_after_a_passing_refusal_is_not(status: int) -> None:
    assert charges(refused(0, status), record(2000, 2100)) == []


def test_another_prompt_after_a_final_refusal_is_another_request() -> None:
    judged = verdict([refused(0, 400, digest="long"), record(50, 90, digest="short")], 1000)

    assert [each["attempts"] for each in judged["requests"]] == [1, 1]
    assert judged["grade"].startswith("sound")


def test_a_shorter_answer_may_be_asked_for_after_an_overflow() -> None:
    first = refused(0, 400, refusal="context_overflow", max_tokens=4000)

    assert charges(first, record(100, 200, max_tokens=100)) == []
    assert charges(first, record(100, 200, max_tokens=4000)) == ["resent_unchanged"]


def test_an_answer_that_the_filter_cut_is_final() -> None:
    cut = record(0, 10, finish_reason="content_filter")

    assert charges(cut, record(500, 600)) == ["resent_unchanged"]


def test_coming_back_before_retry_after_is_charged() -> None:
    asked_to_wait = refused(0, 429, retry_after_s=2.0)

    assert charges(asked_to_wait, record(1000, 1100)) == ["retry_after_ignored"]
    assert charges(asked_to_wait, record(2011, 2100)) == []


def test_coming_back_at_once_is_charged() -> None:
    assert charges(refused(0, 503), record(12, 100)) == ["no_backoff"]


def test_four_attempts_are_a_storm() -> None:
    tries = [refused(1000 * number, 503) for number in range(4)]

    assert charges(*tries[:3]) == []
    assert charges(*tries) == ["storm"]


def test_an_attempt_beside_another_is_charged() -> None:
    assert charges(record(0, 5000), record(1000, 1500)) == ["overlapping"]


def test_an_attempt_after_leaving_a_provider_that_works_on_is_not_beside_it() -> None:
    left = record(0, 5000, client_left_ms=900, ended="client_left")

    assert charges(left, record(1000, 1500)) == []


def test_the_same_prompt_without_an_id_is_another_request_unless_it_failed() -> None:
    def grouped(*endings: str) -> list[int]:
        records = [
            record(i * 1000, i * 1000 + 9, ended=e, headers={}) for i, e in enumerate(endings)
        ]
        return [each["attempts"] for each in verdict(records, 9000)["requests"]]

    assert grouped("complete", "complete", "refused", "complete") == [1, 1, 2]
    assert grouped("", "") == [1, 1]


def test_work_after_the_client_left_is_charged_and_counted() -> None:
    left = record(
        0, 900, ended="client_left", client_left_ms=400, tokens_written=9, tokens_in_vain=4
    )
    judged = verdict([left], 1000)

    assert judged["totals"]["tokens_wasted"] == 9
    assert judged["totals"]["tokens_in_vain"] == 4
    assert judged["grade"] == "late: work_after_leaving ×1"


def test_staying_beyond_the_deadline_that_was_told_is_charged() -> None:
    assert charges(record(0, 1500, deadline_ms=1000)) == ["deadline_overrun"]
    assert charges(record(0, 1100, deadline_ms=1000)) == []
    assert charges(record(0, deadline_ms=1000), now_ms=3000) == ["deadline_overrun"]


def test_leaving_in_time_is_no_overrun_however_late_it_is_noticed() -> None:
    assert charges(record(0, 9000, deadline_ms=1000, client_left_ms=1000)) == []


def test_the_worst_charge_gives_the_grade() -> None:
    judged = verdict([refused(0, 503), refused(12, 401), record(900, 950)], 1000)

    assert judged["grade"] == "harmful: no_backoff ×1, resent_unchanged ×1"


def test_a_log_without_requests_has_a_verdict_as_well() -> None:
    assert verdict([], 0)["totals"]["requests"] == 0
