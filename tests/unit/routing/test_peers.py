"""Holds what routing processes tell each other to what each has learned itself."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.routing.peers import MAX_BYTES, MAX_PEERS, Peers, told_by
from services.routing.record import FRESH_PEER_S, MAX_VIEW_AGE_S, PROOF_S, RunEnd
from services.runtime.circuit import BreakerState
from services.runtime.clock import ManualClock
from tests.requirements import requirement
from tests.unit.routing.boards import A, B, Play, polled


class Pair:
    """Is two routing processes on one clock, of which one hears the other."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.teller = Play(clock=self.clock)
        self.hearer = Play(clock=self.clock)
        self.peers = Peers(self.hearer.board)
        self.sequence = 0

    def tell(self) -> None:
        """Let one message pass."""
        self.sequence += 1
        message = told_by(self.teller.board, self.sequence, self.clock.now())
        self.peers.take({"routing-2": message}, self.clock.now())

    def slowdown(self, address: str) -> float:
        """Return how slow the hearer takes a replica for."""
        return self.hearer.board.slowdown(self.hearer.record(address), self.clock.now())


@requirement("board:shared")
def test_what_one_has_learned_the_other_knows() -> None:
    pair = Pair()
    pair.teller.length_s[B] = 4.0
    pair.teller.run(20)
    pair.teller.wait(10)

    pair.tell()

    own = pair.teller.board.slowdown(pair.teller.record(B), pair.clock.now())
    assert own > 3
    assert pair.slowdown(B) == pytest.approx(own, rel=0.01)
    assert pair.hearer.run(20)[B] <= 0.1 * 400


@requirement("board:shared")
def test_runs_that_hang_at_another_count_as_if_they_were_ours() -> None:
    pair = Pair()
    pair.teller.run(10)
    pair.teller.stopped.add(B)
    pair.teller.run(3)

    pair.tell()
    at_once = pair.slowdown(B)
    load = pair.hearer.record(B).load(pair.clock.now())
    pair.clock.advance(FRESH_PEER_S)
    later = pair.slowdown(B)

    assert at_once > 3
    assert load == pair.teller.record(B).inflight > 0
    assert later < at_once


@requirement("board:shared")
def test_one_that_is_away_for_another_gets_nothing_from_us_either() -> None:
    pair = Pair()
    pair.teller.run(1)
    pair.teller.record(B).take_silence("cannot be reached", pair.clock.now())

    pair.tell()
    sick = pair.hearer.record(B).sick(pair.clock.now())
    pair.clock.advance(FRESH_PEER_S)

    assert sick == "cannot be reached"
    assert pair.hearer.record(B).sick(pair.clock.now()) == ""


def test_what_we_see_ourselves_is_nearer_than_what_we_are_told() -> None:
    pair = Pair()
    pair.hearer.run(5)
    pair.hearer.wait(1)
    pair.teller.run(1)
    pair.teller.record(B).take_silence("cannot be reached", pair.clock.now())

    pair.tell()
    proved = pair.hearer.record(B).sick(pair.clock.now())
    pair.clock.advance(PROOF_S)
    pair.tell()

    assert proved == ""
    assert pair.hearer.record(B).sick(pair.clock.now()) == "cannot be reached"


def test_what_was_heard_is_not_told_on() -> None:
    """Else two processes would confirm each other for ever."""
    pair = Pair()
    pair.teller.run(1)
    pair.teller.record(B).take_silence("cannot be reached", pair.clock.now())
    pair.tell()
    pair.hearer.record(B).take_poll(polled(), pair.clock.now())

    message = told_by(pair.hearer.board, 1, pair.clock.now())

    assert b"cannot be reached" not in message


def test_the_same_message_again_is_no_news() -> None:
    pair = Pair()
    pair.teller.run(10)
    pair.tell()
    told_at = pair.hearer.record(A).peers["routing-2"].told_at
    message = told_by(pair.teller.board, pair.sequence, pair.clock.now())

    pair.clock.advance(3)
    pair.peers.take({"routing-2": message}, pair.clock.now())
    again = pair.hearer.record(A).peers["routing-2"].told_at
    pair.tell()

    assert again == told_at
    assert pair.hearer.record(A).peers["routing-2"].told_at == told_at + 3


@requirement("board:shared")
def test_whose_message_is_gone_is_forgotten() -> None:
    pair = Pair()
    pair.teller.run(10)
    pair.tell()

    pair.peers.take({}, pair.clock.now())

    assert pair.hearer.record(A).peers == {}


def test_a_view_of_another_counts_by_its_age_when_it_is_newer() -> None:
    pair = Pair()
    pair.teller.record(A).take_poll(
        polled(breakers={"model": BreakerState.OPEN}, mean_s={"model": 2.0}), pair.clock.now()
    )
    pair.clock.advance(10)

    pair.tell()
    heard = pair.hearer.record(A).latest_view()
    pair.hearer.record(A).take_poll(polled(), pair.clock.now())

    assert heard.told_at == pytest.approx(pair.clock.now() - 10)
    assert (heard.breakers, heard.mean_s) == ({"model": BreakerState.OPEN}, {"model": 2.0})
    assert pair.hearer.record(A).latest_view().breakers == {}


def test_an_old_view_is_not_told() -> None:
    pair = Pair()
    pair.teller.record(A).take_poll(polled(breakers={"model": BreakerState.OPEN}), pair.clock.now())
    pair.clock.advance(MAX_VIEW_AGE_S + 1)

    pair.tell()

    assert pair.hearer.record(A).latest_view().breakers == {}


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"no json",
        b"{}",
        b'{"sequence": 1, "replicas": {"a:1": {"log_slow": 1e9}}}',
        b'{"sequence": 1, "replicas": {"a:1": {"log_slow": NaN}}}',
        b"x" * (MAX_BYTES + 1),
    ],
)
def test_what_is_no_message_is_passed_over(garbage: bytes) -> None:
    pair = Pair()

    pair.peers.take({"routing-2": garbage}, pair.clock.now())

    assert pair.hearer.record(A).peers == {}


@given(value=st.binary(max_size=200))
def test_no_bytes_raise(value: bytes) -> None:
    Pair().peers.take({"x": value}, 1.0)


def test_no_more_peers_are_kept_than_there_is_room_for() -> None:
    pair = Pair()
    pair.teller.run(1)
    message = told_by(pair.teller.board, 1, pair.clock.now())

    pair.peers.take({f"routing-{n}": message for n in range(200)}, pair.clock.now())

    assert len(pair.hearer.record(A).peers) == MAX_PEERS


def test_many_that_agree_say_no_more_than_one() -> None:
    pair = Pair()
    record, now = pair.teller.record(B), pair.clock.now()
    record.end(record.begin("orders", now - 8.0, 1.0, 1.0, probe=False), RunEnd.ANSWERED, now)
    message = told_by(pair.teller.board, 1, now)

    pair.peers.take({f"routing-{n}": message for n in range(10)}, now)

    assert pair.hearer.record(B).known_log(now) == pytest.approx(math.log(8.0))
