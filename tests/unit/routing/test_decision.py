"""Holds the decision about the model and the tools to what replicas have told lately."""

import random

import pytest

from services.routing.decision import (
    TRIAL_RATIO,
    ContextSize,
    ModelAdvice,
    ModelRoute,
    advise,
    cut_off,
    decide,
)
from services.routing.record import MAX_VIEW_AGE_S, DependencyView
from services.runtime.circuit import BreakerState
from services.runtime.load_report import LoadReport
from tests.requirements import requirement
from tests.unit.routing.boards import A, B, Play, polled

OPEN, HALF_OPEN = BreakerState.OPEN, BreakerState.HALF_OPEN
WAIT_S = 10.0
PRIMARY = ModelAdvice()


def backup(reason: str) -> ModelAdvice:
    """Return the advice to ask the backup."""
    return ModelAdvice(route=ModelRoute.BACKUP, context=ContextSize.COMPRESSED, reason=reason)


def advice(play: Play, wait_s: float = WAIT_S) -> ModelAdvice:
    """Return how the next run had better call the model."""
    return decide(play.board, (), wait_s, play.clock.now(), random.Random(1)).advice


@requirement("board:model-route")
@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (DependencyView(), PRIMARY),
        (DependencyView(breakers={"model": OPEN}), backup("model_open")),
        (DependencyView(breakers={"tool/sql": OPEN}), PRIMARY),
        (DependencyView(mean_s={"model": 5.9}), PRIMARY),
        (
            DependencyView(mean_s={"model": 6.1}),
            ModelAdvice(context=ContextSize.COMPRESSED, reason="model_tight"),
        ),
        (DependencyView(mean_s={"model": 10.1}), backup("model_slow")),
        (DependencyView(breakers={"model": OPEN}, mean_s={"model": 0.1}), backup("model_open")),
    ],
)
def test_the_backup_is_asked_when_the_primary_would_refuse_or_be_late(
    view: DependencyView, expected: ModelAdvice
) -> None:
    assert advise(view, WAIT_S, random.Random(1)) == expected


@requirement("board:model-route")
def test_a_half_open_model_is_tried_by_some_runs_so_that_it_can_close() -> None:
    view, chance = DependencyView(breakers={"model": HALF_OPEN}), random.Random(1)

    given = [advise(view, WAIT_S, chance) for _ in range(500)]

    assert set(given) == {backup("model_half_open"), ModelAdvice(reason="model_trial")}
    tried = given.count(ModelAdvice(reason="model_trial"))
    assert 0.5 * TRIAL_RATIO < tried / len(given) < 2 * TRIAL_RATIO


@requirement("board:model-route")
def test_what_the_chosen_replica_tells_counts_before_what_others_tell() -> None:
    play = Play()
    now = play.clock.now()
    play.record(A).take_poll(polled(), now)
    play.record(B).take_poll(polled(breakers={"model": OPEN}), now)

    routes = {
        decision.placement.record.address: decision.advice.route
        for decision in (
            decide(play.board, (), WAIT_S, now, random.Random(seed)) for seed in range(40)
        )
    }

    assert routes == {A: ModelRoute.PRIMARY, B: ModelRoute.BACKUP}


def test_a_replica_that_has_told_nothing_is_taken_for_like_the_one_that_told_last() -> None:
    play = Play()
    play.record(A).take_poll(polled(), play.clock.now())
    play.clock.advance(1)
    play.record(A).take_report(LoadReport(breakers={"model": OPEN}), play.clock.now())

    assert {advice(play).reason for _ in range(20)} == {"model_open"}


def test_what_was_told_long_ago_says_nothing() -> None:
    play = Play()
    play.record(A).take_poll(polled(breakers={"model": OPEN, "tool/sql": OPEN}), play.clock.now())

    play.clock.advance(MAX_VIEW_AGE_S + 0.1)
    decision = decide(play.board, ("sql",), WAIT_S, play.clock.now(), random.Random(1))

    assert (decision.advice, decision.broken_tools) == (PRIMARY, ())


@requirement("board:broken-tools")
def test_a_tool_is_broken_when_every_replica_has_cut_it_off() -> None:
    both = [DependencyView(breakers={"tool/sql": OPEN, "tool/pdf": OPEN}) for _ in range(2)]
    one = [both[0], DependencyView(breakers={"tool/pdf": HALF_OPEN})]

    assert cut_off(("sql", "search"), both) == ("sql",)
    assert cut_off(("sql", "pdf"), one) == ()
    assert cut_off(("sql",), []) == ()


@requirement("board:broken-tools")
def test_the_reason_names_the_place_the_model_and_the_tools() -> None:
    play = Play((A,))
    broken = polled(pod="domain-7", breakers={"model": OPEN, "tool/sql": OPEN, "tool/pdf": OPEN})
    play.record(A).take_poll(broken, play.clock.now())

    decision = decide(play.board, ("profile", "sql"), WAIT_S, play.clock.now(), random.Random(1))

    assert decision.reason == "only,model_open,tool_cut_off:sql"
    assert decision.replica == "domain-7"


def test_a_replica_that_is_away_has_no_say_about_tools() -> None:
    play = Play()
    now = play.clock.now()
    play.record(A).take_poll(polled(breakers={"tool/sql": OPEN}), now)
    play.record(B).take_poll(polled(), now)
    play.record(B).take_silence("unreachable", now)

    decision = decide(play.board, ("sql",), WAIT_S, now, random.Random(1))

    assert decision.broken_tools == ("sql",)
