"""Holds the book of runs to taking every run in, and to being in nobody's way."""

import asyncio
from typing import cast

import pytest

from gateway.runs.log import EventLog
from gateway.runs.record import Status
from services.runtime.background import background
from services.runtime.clock import ManualClock
from services.runtime.errors import (
    DependencyFailedError,
    InvalidArgumentError,
    LoadShedError,
    Origin,
    RunCancelledError,
    UnauthenticatedError,
)
from sixhop.type.v1 import chat_pb2, run_pb2
from tests.requirements import requirement
from tests.unit.gateway.runs.made import (
    Gateway,
    file,
    finished,
    kept,
    restarted,
    text,
    thinking,
    words_of,
)

FAILED = DependencyFailedError(
    "domain", "gone", cause="closed", origin=Origin("model", code="UNAVAILABLE", reason="X")
)


@requirement("runs:every-door")
def test_a_run_that_ended_well_is_kept_with_all_that_is_known_of_it(clock: ManualClock) -> None:
    gateway = Gateway(clock)
    inbound = gateway.begin("r1", tenant="acme")
    gateway.tell(inbound, text("Be"))
    clock.advance(0.25)
    gateway.tell(inbound, text("cause."))
    gateway.tell(inbound, finished(file(), finish_reason="stop"))
    gateway.book.after(inbound, None)

    run = gateway.memory.find("acme", "r1")

    assert run is not None
    record, words = run.told_record(), run.words()
    assert (record.status, record.request_id, record.gateway) == ("ok", "q-r1", "gateway-1")
    assert (record.agent, record.model, record.finish_reason) == ("chat", "m", "stop")
    assert (record.elapsed_ms, record.budget_ms, record.event_count) == (250, 10_000, 3)
    assert words is not None
    assert words.text == "Because."
    assert run.files == {"report.pdf": b"x" * 10}
    assert [told.at_ms for told in run.log.told()] == [0, 250, 250]


@requirement("runs:every-door")
@pytest.mark.parametrize(
    ("error", "status"),
    [
        (FAILED, Status.FAILED),
        (InvalidArgumentError("question", "is empty"), Status.FAILED),
        (RunCancelledError("by its tenant", cause="cancelled"), Status.CANCELLED),
        (asyncio.CancelledError(), Status.CANCELLED),
        (GeneratorExit(), Status.CANCELLED),
    ],
)
def test_how_a_run_ends_is_kept(clock: ManualClock, error: BaseException, status: Status) -> None:
    gateway = Gateway(clock)
    inbound = gateway.begin()

    gateway.book.after(inbound, error)

    assert kept(inbound).record.status is status


@requirement("runs:every-door")
def test_an_error_is_kept_with_whose_it_is(clock: ManualClock) -> None:
    gateway = Gateway(clock)
    inbound = gateway.begin()
    clock.advance(4.0)

    gateway.book.after(inbound, FAILED)

    error = kept(inbound).record.error
    assert error is not None
    assert (error["code"], error["reason"], error["hop"]) == (
        "ABORTED",
        "DEPENDENCY_FAILED",
        "model",
    )
    assert (error["cause"], error["remaining_ms"], error["message"]) == ("closed", 6000, "gone")


@requirement("runs:every-door")
def test_who_leaves_after_the_last_event_has_had_the_answer(clock: ManualClock) -> None:
    gateway = Gateway(clock)
    inbound = gateway.begin()
    gateway.tell(inbound, finished())

    gateway.book.after(inbound, GeneratorExit())

    assert kept(inbound).record.status is Status.OK


@requirement("runs:every-door")
@pytest.mark.parametrize(
    "event",
    [
        finished(degraded=True),
        finished(missing_parts=["pdf"]),
    ],
)
def test_a_lesser_answer_is_told_from_a_full_one(
    clock: ManualClock, event: run_pb2.RunEvent
) -> None:
    assert Gateway(clock).ended("r1", event).record.status is Status.DEGRADED


@requirement("runs:every-door")
def test_a_run_that_was_refused_is_kept_without_its_question(clock: ManualClock) -> None:
    gateway = Gateway(clock)

    gateway.book.after(gateway.arrive("r1"), LoadShedError("full", cause="limit"))

    run = gateway.memory.find("", "r1")
    assert run is not None
    record = run.record
    assert (record.status, record.question_char_count, record.budget_ms) == ("failed", None, None)
    assert record.error is not None
    assert record.error["reason"] == "LOAD_SHED"


@requirement("runs:own-tenant")
def test_who_is_not_known_has_no_runs(clock: ManualClock) -> None:
    gateway = Gateway(clock)

    gateway.book.after(gateway.arrive(), UnauthenticatedError("who are you?"))

    assert gateway.ids() == set()


@requirement("runs:looks-are-no-runs")
def test_a_call_that_is_no_run_is_not_kept(clock: ManualClock) -> None:
    gateway = Gateway(clock)

    gateway.book.after(gateway.arrive(method="ListAgents"), LoadShedError("full"))
    gateway.book.after(gateway.arrive(method="ListAgents"), None)

    assert gateway.ids() == set()


@requirement("runs:own-tenant")
def test_two_tenants_may_call_their_runs_the_same(clock: ManualClock) -> None:
    gateway = Gateway(clock)

    gateway.ended("same", text("for a"), finished(), tenant="a")
    gateway.ended("same", text("for b"), finished(), tenant="b")

    mine = gateway.memory.find("a", "same")
    assert mine is not None
    assert words_of(mine)[0] == (1, "for a")
    assert gateway.memory.find("c", "same") is None


@requirement("runs:words-go")
def test_the_words_of_a_question_are_not_kept(clock: ManualClock) -> None:
    run = Gateway(clock).ended("r1", question="My secret?")

    assert (run.record.question, run.record.question_char_count) == (None, 10)
    assert "secret" not in repr(run.record)


@requirement("runs:words-go")
def test_the_words_of_an_answer_go_when_nobody_comes_back_for_them(clock: ManualClock) -> None:
    gateway = Gateway(clock, resume_s=300.0)
    run = gateway.ended("r1", text("My "), text("secret."), finished(sources=["SELECT secret"]))

    clock.advance(299.0)
    gateway.memory.tidy()
    before = run.words()
    clock.advance(2.0)
    gateway.memory.tidy()

    assert before is not None
    assert before.text == "My secret."
    assert run.words() is None
    assert "secret" not in str(list(run.log.told()))
    assert [told.sequence for told in run.log.told()] == [2, 3]
    assert gateway.memory.byte_count == run.byte_count


@requirement("runs:words-go")
def test_words_stay_with_the_record_where_prompts_may_be_kept(clock: ManualClock) -> None:
    gateway = Gateway(clock, keep_prompts=True)
    run = gateway.ended("r1", text("So."), finished(), question="Why?")

    clock.advance(1000.0)
    gateway.memory.tidy()

    words = run.words()
    assert run.record.question == "Why?"
    assert words is not None
    assert words.text == "So."


def test_what_was_voided_is_not_kept_as_an_answer(clock: ManualClock) -> None:
    call = run_pb2.RunEvent(tool_call=chat_pb2.ToolCall(id="a", name="sql"))

    run = Gateway(clock).ended("r1", text("Wrong"), call, restarted(), text("Right"), finished())

    words = run.words()
    assert words is not None
    assert (words.text, words.tool_calls) == ("Right", ())


@requirement("runs:never-in-the-way")
def test_a_defect_of_the_book_ends_no_run(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = Gateway(clock)
    inbound = gateway.begin()

    def broken(*_: object) -> None:
        raise RuntimeError("a defect")

    ending = gateway.begin("r2")
    for event in (text("So."), thinking()):
        telling = gateway.begin("r0")
        run = kept(telling)
        run.log = cast(EventLog, None)
        gateway.tell(telling, event)
        assert (run.gone, telling.kept, gateway.ids()) == (True, None, {"r1", "r2"})
        gateway.book.after(telling, None)
    for name in ("begin", "end", "refuse"):
        monkeypatch.setattr(gateway.memory, name, broken)
    gateway.book.after(inbound, None)
    gateway.book.after(ending, None)
    gateway.book.after(gateway.begin("r3"), None)
    gateway.book.after(gateway.arrive("r4"), LoadShedError("full"))

    # What is not kept whole would be shown as running for ever.
    assert gateway.ids() == set()


@requirement("runs:never-in-the-way")
async def test_a_defect_in_tidying_does_not_end_it(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = Gateway(clock)
    rounds: list[int] = []

    def broken() -> None:
        rounds.append(1)
        raise RuntimeError("a defect")

    monkeypatch.setattr(gateway.memory, "tidy", broken)
    async with background(gateway.book.tidy_forever()):
        for _ in range(3):
            await asyncio.sleep(0)
            clock.advance(1.0)
            await asyncio.sleep(0)

    assert len(rounds) >= 2
