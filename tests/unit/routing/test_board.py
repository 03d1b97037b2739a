"""Holds the board to sending runs where they are done first, and to finding out who is well."""

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.routing.board import Why, cost
from services.routing.config import BoardSettings
from services.routing.record import RunEnd
from tests.requirements import requirement
from tests.unit.routing.boards import A, B, C, Play, polled


def share(counts: Counter[str], address: str) -> float:
    """Return which part of the runs went to a replica."""
    return counts[address] / counts.total()


def test_a_single_replica_gets_everything_whatever_is_known_of_it() -> None:
    play = Play((A,))
    play.record(A).take_silence("unreachable", play.clock.now())

    assert play.board.place().why is Why.ONLY


def test_equals_share_the_runs() -> None:
    play = Play((A, B, C))

    counts = play.run(30)

    assert all(0.2 < share(counts, address) < 0.5 for address in (A, B, C)), counts
    assert {placement.why for _, placement in play.placed} == {Why.LEAST_EXPECTED}


@requirement("board:leaves-the-slow")
def test_new_runs_leave_a_replica_that_has_become_slow_within_two_seconds() -> None:
    play = Play()
    play.run(10)

    play.length_s[B] = 4.0
    play.run(2)
    after = play.run(20)

    assert share(after, A) >= 0.9, after


@requirement("board:leaves-the-slow")
def test_runs_that_hang_make_a_replica_slow_before_any_of_them_ends() -> None:
    play = Play()
    play.run(10)

    play.stopped.add(B)
    play.run(2)
    after = play.run(20)

    assert share(after, A) >= 0.9, after


@requirement("board:leaves-the-slow")
def test_a_frozen_replica_is_left_even_when_runs_take_long_as_a_rule() -> None:
    """No first event comes, and that is known long before any run would have ended."""
    play = Play(length_s={A: 20.0, B: 20.0})
    play.run(60, rps=2)

    play.stopped.add(B)
    play.run(2, rps=2)
    after = play.run(10, rps=2)

    assert share(after, A) >= 0.9, after


@requirement("board:comes-back")
def test_a_replica_that_is_well_again_gets_its_share_back() -> None:
    play = Play()
    play.run(10)
    play.length_s[B] = 4.0
    play.run(20)

    play.length_s[B] = 0.1
    play.wait(4)
    took_s = play.until(lambda: play.run(1)[B] >= 5, within_s=30)

    assert took_s <= 10


@requirement("board:comes-back")
def test_a_replica_that_hung_gets_its_share_back_once_it_is_well() -> None:
    play = Play()
    play.run(10)
    play.stopped.add(B)
    play.run(20)

    play.release()

    play.until(lambda: play.run(1)[B] >= 5, within_s=30)


def test_the_slow_are_tried_by_a_twentieth_of_the_runs_at_most() -> None:
    play = Play()
    play.run(10)
    play.length_s[B] = 50.0
    play.run(5)

    later = play.run(60)

    probes = [p for _, p in play.placed[-later.total() :] if p.why is Why.PROBE]
    assert 0 < later[B] == len(probes) <= later.total() / 20


def test_a_probe_is_alone() -> None:
    play = Play(settings=BoardSettings(probe_interval_s=0.5))
    play.run(10)
    play.stopped.add(B)
    play.run(2)
    before = play.record(B).inflight

    play.run(60)

    assert play.record(B).inflight <= before + 1


@requirement("board:sick-get-probes")
def test_after_failures_in_a_row_nothing_but_probes_goes_to_a_replica() -> None:
    play = Play(ends={B: RunEnd.FAILED})
    play.run(5)
    sick = play.record(B).sick(play.clock.now())

    counts = play.run(20)

    assert sick.endswith("times in a row")
    assert 0 < counts[B] <= counts.total() / 20


@requirement("board:comes-back")
def test_a_probe_that_ends_well_makes_a_failing_replica_well() -> None:
    play = Play(ends={B: RunEnd.FAILED})
    play.run(5)

    play.ends.clear()
    took_s = play.until(lambda: not play.record(B).sick(play.clock.now()), within_s=30)

    assert took_s <= 6


def test_failing_is_forgiven_without_any_traffic() -> None:
    play = Play(ends={B: RunEnd.FAILED})
    play.run(5)

    play.clock.advance(play.settings.sick_s)

    assert not play.record(B).sick(play.clock.now())


@pytest.mark.parametrize("end", [RunEnd.ELSEWHERE, RunEnd.CUT, RunEnd.REFUSED])
def test_what_is_no_fault_of_a_replica_makes_it_not_sick(end: RunEnd) -> None:
    play = Play(ends={B: end})

    play.run(10)

    assert not play.record(B).sick(play.clock.now())


def test_a_refusal_for_load_sends_the_next_runs_elsewhere_for_a_moment() -> None:
    play = Play(ends={B: RunEnd.REFUSED}, length_s={B: 0.01})
    play.run(5)
    refused = play.run(10)

    play.ends.clear()
    play.wait(1)
    later = play.run(10)

    # A fast no would look like the fastest answer of all.
    assert share(refused, B) < 0.4
    assert share(later, B) > 0.3


@requirement("board:sick-get-probes")
@pytest.mark.parametrize("how", ["unready", "silent", "unreachable"])
def test_no_run_goes_to_a_replica_that_is_away_until_a_poll_finds_it(how: str) -> None:
    play = Play()
    play.run(5)
    record, now = play.record(B), play.clock.now()
    if how == "unready":
        record.take_poll(polled(ready=False, detail="draining"), now)
    elif how == "silent":
        record.take_silence("no answer within 2 s", now)
    else:
        record.end(record.begin("orders", now, 1.0, 1.0, probe=False), RunEnd.UNREACHABLE, now)
    away = play.run(60)

    record.take_poll(polled(), play.clock.now())
    back = play.run(10)

    assert away[B] == 0
    assert share(back, B) > 0.3


def test_when_all_are_away_the_run_is_tried_all_the_same() -> None:
    play = Play()
    now = play.clock.now()
    for address in (A, B):
        play.record(address).take_silence("unreachable", now)

    placement = play.board.place()
    blocked = play.board.place(frozenset({A}))

    assert placement.why is Why.ALL_SICK
    assert (blocked.why, blocked.record.address) == (Why.ALL_SICK, B)


def test_a_run_that_comes_through_proves_that_a_replica_is_there() -> None:
    play = Play((A,))
    play.record(A).take_silence("unreachable", play.clock.now())
    play.clock.advance(1)

    play.send()

    assert not play.record(A).sick(play.clock.now())


def test_blocked_replicas_get_nothing() -> None:
    play = Play()

    chosen = {play.board.place(frozenset({A})).record.address for _ in range(50)}

    assert chosen == {B}


def test_what_others_send_there_counts_and_fades() -> None:
    play = Play()
    play.record(B).take_poll(polled(inflight=200), play.clock.now())

    at_once = play.run(2)
    play.wait(60)
    later = play.run(10)

    assert at_once[B] == 0
    assert share(later, B) > 0.3


def test_a_small_replica_gets_its_smaller_share() -> None:
    """Both serve what they are given equally fast; one may have a quarter of the other's calls."""
    play = Play(length_s={A: 1.0, B: 1.0}, seed=3)
    play.record(A).take_poll(polled(limit=400), play.clock.now())
    play.record(B).take_poll(polled(limit=100), play.clock.now())

    counts = play.run(60, rps=40)

    assert 0.1 < share(counts, B) < 0.3


def test_medians_that_replicas_tell_count_until_a_run_was_tried() -> None:
    play = Play()
    now = play.clock.now()
    play.record(A).take_poll(polled(p50_s=0.1, call_count=500), now)
    play.record(B).take_poll(polled(p50_s=10.0, call_count=500), now)
    play.board.learn_priors()
    placed = [play.board.place() for _ in range(20)]
    untried = Counter((each.record.address, each.why) for each in placed)

    play.record(B).end(play.record(B).begin("x", now, 0.05, 0.1, probe=False), RunEnd.ANSWERED, now)

    assert untried == {(A, Why.LEAST_EXPECTED): 19, (B, Why.PROBE): 1}
    assert play.board.slowdown(play.record(A), now) == pytest.approx(1 / 3)
    assert play.board.slowdown(play.record(B), now) == pytest.approx(1.0)


def test_a_median_of_few_calls_is_no_prior() -> None:
    play = Play()
    now = play.clock.now()
    play.record(A).take_poll(polled(p50_s=0.1, call_count=500), now)
    play.record(B).take_poll(polled(p50_s=10.0, call_count=3), now)

    play.board.learn_priors()

    assert play.board.slowdown(play.record(B), now) == 1.0


def test_without_news_what_is_known_fades() -> None:
    play = Play(length_s={B: 4.0})
    play.run(5)
    play.wait(10)
    then = play.board.slowdown(play.record(B), play.clock.now())

    play.clock.advance(10 * play.settings.half_life_s)
    later = play.board.slowdown(play.record(B), play.clock.now())

    assert then > 3
    assert later == pytest.approx(1.0, rel=0.01)


def test_agents_that_take_long_make_nobody_slow() -> None:
    """One replica happens to get the long runs, the other the short ones."""
    play = Play()
    for _ in range(40):
        for agent, address, length_s in (("chat", A, 8.0), ("orders", B, 0.1)):
            record, now = play.record(address), play.clock.now()
            ticket = record.begin(agent, now, play.board.usual_s(agent), 0.5, probe=False)
            play.clock.advance(length_s)
            play.board.end(record, ticket, RunEnd.ANSWERED)

    now = play.clock.now()
    slow = [play.board.slowdown(play.record(address), now) for address in (A, B)]

    assert slow == [pytest.approx(1.0, rel=0.1)] * 2


def test_what_each_replica_does_is_told_in_words() -> None:
    play = Play()
    play.record(A).take_poll(polled(pod="domain-7"), play.clock.now())
    play.record(B).take_silence("unreachable", play.clock.now())

    assert play.board.describe() == (
        "domain-7: 1.0× the usual time, 0 runs; b:1: unreachable, 0 runs"
    )


@given(
    events=st.lists(
        st.tuples(
            st.sampled_from(["run", "away", "back", "wait", *RunEnd]),
            st.integers(0, 2),
            st.floats(0, 8),
        ),
        max_size=80,
    )
)
def test_whatever_happens_runs_are_counted_and_go_to_the_well(
    events: list[tuple[str, int, float]],
) -> None:
    play = Play((A, B, C))
    records = [play.record(address) for address in (A, B, C)]
    tickets: list[tuple[int, object]] = []
    for event, which, length_s in events:
        now = play.clock.now()
        if event == "run":
            well = {r.address for r in records if not r.sick(now)}
            placement = play.board.place()
            probe = placement.why is Why.PROBE
            assert probe or not well or placement.record.address in well
            assert not (probe and placement.record.away)
            ticket = play.board.begin(placement, "orders")
            tickets.append((records.index(placement.record), ticket))
        elif event == "away":
            records[which].take_silence("gone", now)
        elif event == "back":
            records[which].take_poll(polled(), now)
        elif event in set(RunEnd) and tickets:
            index, ended = tickets.pop(which % len(tickets))
            play.board.end(records[index], ended, RunEnd(event))  # type: ignore[arg-type]
        play.clock.advance(length_s)

    now = play.clock.now()
    under_way = Counter(index for index, _ in tickets)
    assert [record.inflight for record in records] == [under_way[index] for index in range(3)]
    assert all(0 <= record.probing <= record.inflight for record in records)
    slow = [play.board.slowdown(record, now) for record in records]
    assert all(0 < cost(record, slow[i], now) < math.inf for i, record in enumerate(records))
