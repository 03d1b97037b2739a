"""Holds what is kept of runs to its bounds."""

import gc
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.runtime.clock import ManualClock
from services.runtime.errors import AlreadyExistsError, LoadShedError
from sixhop.type.v1 import run_pb2
from tests.requirements import requirement
from tests.unit.gateway.runs.made import Gateway, file, finished, kept, text, thinking, words_of

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["begin", "text", "think", "file", "end", "refuse", "later", "tidy"]),
        st.integers(0, 5),
        st.integers(0, 4_000),
    ),
    max_size=120,
)
"""What happens, to which run, and how large it is."""


@requirement("runs:bounded")
def test_the_oldest_run_that_has_ended_goes_first(clock: ManualClock) -> None:
    gateway = Gateway(clock, max_count=2)
    gateway.begin("lives")
    gateway.ended("old")

    gateway.ended("new")

    assert gateway.ids() == {"lives", "new"}


@requirement("runs:bounded")
def test_runs_that_live_go_only_when_nothing_else_is_left(clock: ManualClock) -> None:
    gateway = Gateway(clock, max_count=2)
    first = gateway.begin("first")

    gateway.begin("second")
    gateway.begin("third")
    gateway.tell(first, text("lost"))
    gateway.book.after(first, None)

    assert gateway.ids() == {"second", "third"}
    assert kept(first).gone


@requirement("runs:bounded")
def test_whoever_still_holds_a_run_that_is_gone_holds_nothing_of_it(clock: ManualClock) -> None:
    gateway = Gateway(clock, max_count=1)
    gone = gateway.ended("gone", text("a"), finished(file()))

    gateway.ended("there")

    assert (gone.files, list(gone.log.told())) == ({}, [])


@requirement("runs:bounded")
def test_refusals_drive_out_refusals_only(clock: ManualClock) -> None:
    gateway = Gateway(clock, max_count=5, max_refused_count=2)
    gateway.ended("answered")

    for number in range(10):
        refused = gateway.arrive(f"refused-{number}")
        gateway.book.after(refused, LoadShedError("full", cause="limit"))

    assert gateway.ids() == {"answered", "refused-8", "refused-9"}


@requirement("runs:bounded")
def test_a_run_goes_when_it_is_too_old(clock: ManualClock) -> None:
    gateway = Gateway(clock, max_age_s=60.0)
    gateway.ended("old")
    clock.advance(30.0)
    gateway.ended("young")
    gateway.begin("lives")

    clock.advance(31.0)
    gateway.memory.tidy()

    assert gateway.ids() == {"young", "lives"}


@requirement("runs:bounded")
def test_a_run_that_says_too_much_loses_its_oldest_events(clock: ManualClock) -> None:
    gateway = Gateway(clock, max_run_bytes=10_000)
    inbound = gateway.begin()

    for number in range(1000):
        gateway.tell(inbound, text(f"{number}"))

    run = kept(inbound)
    assert run.byte_count <= 10_000
    assert words_of(run)[-1] == (1000, "999")
    assert run.log.first > 1


@requirement("runs:bounded", "runs:files")
def test_a_file_that_does_not_fit_is_not_kept_and_that_is_told(clock: ManualClock) -> None:
    gateway = Gateway(clock, max_run_bytes=10_000)

    run = gateway.ended("r1", finished(file("small.pdf", 100), file("large.pdf", 9_000)))

    assert set(run.files) == {"small.pdf"}
    assert [(each["name"], each["kept"]) for each in run.record.artifacts] == [
        ("small.pdf", True),
        ("large.pdf", False),
    ]


@requirement("runs:one-of-a-name")
@pytest.mark.parametrize("live", [True, False], ids=["live", "ended"])
def test_no_run_takes_the_name_of_one_that_is_kept(clock: ManualClock, live: bool) -> None:
    gateway = Gateway(clock)
    first = gateway.begin("same")
    gateway.tell(first, finished(file()))
    if not live:
        gateway.book.after(first, None)
    second, third = gateway.arrive("same"), gateway.arrive("same")

    with pytest.raises(AlreadyExistsError, match="/v1/runs/same"):
        gateway.book.begin(second, run_pb2.Question(text="Again?"), "chat")
    gateway.book.after(second, AlreadyExistsError("same"))
    gateway.book.after(third, LoadShedError("full", cause="limit"))

    found = gateway.memory.find("", "same")
    assert found is kept(first)
    assert (found.gone, found.live, set(found.files)) == (False, live, {"report.pdf"})
    assert found.record.error is None
    assert len(gateway.memory) == 1
    assert gateway.memory.byte_count == found.byte_count


@requirement("runs:one-of-a-name")
def test_the_name_of_a_run_that_was_refused_or_is_another_tenants_is_free(
    clock: ManualClock,
) -> None:
    gateway = Gateway(clock)
    gateway.begin("same", tenant="other")
    gateway.book.after(gateway.arrive("same"), LoadShedError("full", cause="limit"))

    again = gateway.begin("same")

    assert gateway.memory.find("", "same") is kept(again)
    assert len(gateway.memory) == 2


@requirement("runs:one-of-a-name")
def test_the_name_of_a_run_that_is_not_kept_any_more_is_free(clock: ManualClock) -> None:
    gateway = Gateway(clock, max_age_s=60.0)
    gateway.ended("same")
    clock.advance(61.0)
    gateway.memory.tidy()

    assert kept(gateway.begin("same")).live


@requirement("runs:bounded")
@given(STEPS)
def test_whatever_happens_all_bounds_hold_after_every_step(
    steps: list[tuple[str, int, int]],
) -> None:
    clock = ManualClock()
    gateway = Gateway(
        clock,
        max_count=4,
        max_refused_count=2,
        max_bytes=20_000,
        max_run_bytes=12_000,
        max_age_s=5.0,
        resume_s=2.0,
    )
    running = {number: gateway.begin(f"{number}") for number in range(6)}

    for step, number, size in steps:
        inbound = running[number]
        if step == "begin":
            if not gateway.memory.holds("", f"{number}"):
                running[number] = gateway.begin(f"{number}")
        elif step == "text":
            gateway.tell(inbound, text("x" * (size + 1)))
        elif step == "think":
            gateway.tell(inbound, thinking("s" * size))
        elif step == "file":
            gateway.tell(inbound, finished(file(f"{size}", size)))
        elif step == "end":
            gateway.book.after(inbound, None)
        elif step == "refuse":
            gateway.book.after(gateway.arrive(f"{number}"), LoadShedError("full", cause="limit"))
        elif step == "later":
            clock.advance(1.0)
        else:
            gateway.memory.tidy()
        runs = list(gateway.memory)
        assert gateway.memory.byte_count == sum(run.byte_count for run in runs) <= 20_000
        assert all(run.byte_count <= 12_000 for run in runs)
        assert len(runs) <= 6
        assert len({run.key for run in runs}) == len(runs)
        assert not any(run.gone for run in runs)


@requirement("runs:bounded")
@pytest.mark.timeout(60)
def test_a_flood_of_runs_takes_no_more_memory_than_is_said(clock: ManualClock) -> None:
    gateway = Gateway(clock, max_bytes=2_000_000, max_count=100_000)
    events = [text(f"word {number} ") for number in range(60)]

    def flood(first: int) -> None:
        for number in range(first, first + 700):
            gateway.ended(f"run-{number}", *events, finished(file("f.pdf", 2_000)))

    flood(0)
    gc.collect()
    tracemalloc.start()
    try:
        # A second flood displaces the first one, so that all of it is what is counted here.
        flood(700)
        gc.collect()
        traced, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert len(gateway.memory) < 700
    assert gateway.memory.byte_count <= 2_000_000
    assert traced <= 1.5 * 2_000_000
