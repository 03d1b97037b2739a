"""Holds the ladders to the design's arithmetic."""

import itertools

from services.runtime.policies.deadline import margin_s
from services.runtime.rungs import SIX_HOPS, legs, path_ladder, unary_ladder
from services.runtime.topology import EDGES
from tests.unit.runtime.checks.configuring import configured


def test_the_unary_ladder_is_that_of_the_design() -> None:
    rungs = unary_ladder(30.0, 0.6)

    assert [rung.hop for rung in rungs] == list(SIX_HOPS)
    assert [round(rung.deadline_s, 1) for rung in rungs] == [30.0, 18.0, 10.8, 6.5, 3.9, 2.3]


def test_streams_keep_all_but_a_margin_at_each_hop() -> None:
    config = configured()

    rungs = path_ladder(30.0, config)

    assert [rung.hop for rung in rungs] == list(SIX_HOPS)
    assert [round(rung.deadline_s, 1) for rung in rungs] == [30.0, 28.9, 27.8, 16.5, 15.4, 14.3]


def test_no_rung_waits_longer_than_the_share_of_the_one_above() -> None:
    rungs = path_ladder(30.0, configured())

    for above, below in itertools.pairwise(rungs):
        assert below.wait_s <= 0.6 * above.deadline_s + 1e-9
        assert below.deadline_s <= above.deadline_s - margin_s(above.deadline_s) or (
            below.deadline_s <= 0.6 * above.deadline_s
        )


def test_every_edge_is_the_end_of_a_path_from_the_gateway() -> None:
    backup = {"MODEL_BACKUP__BASE_URL": "http://small:8000/v1"}
    found = legs(30.0, configured())

    assert {(leg.caller, leg.callee) for leg in legs(30.0, configured(**backup))} == {
        (edge.caller, edge.callee) for edge in EDGES
    }
    assert not any("model_backup" in leg.path for leg in found)
    assert [leg.name for leg in found if leg.callee == "llm"] == [
        "gateway → routing → domain → model → llm",
        "gateway → routing → domain → tool → model → llm",
    ]


def test_what_a_leg_has_is_what_the_ladder_gives_its_caller() -> None:
    config = configured()
    rungs = {rung.hop: rung for rung in path_ladder(30.0, config)}

    for leg in legs(30.0, config):
        if leg.path == SIX_HOPS[: len(leg.path)]:
            assert leg.has_s == rungs[leg.caller].deadline_s
            assert leg.deadline_s == rungs[leg.callee].deadline_s


def test_a_caller_gives_up_a_silent_model_at_its_first_content_timeout() -> None:
    waits = {leg.name: leg.silence_s for leg in legs(30.0, configured()) if leg.callee == "model"}

    assert set(waits.values()) == {6.0}


def test_static_deadlines_are_what_is_declared_and_know_nothing_of_each_other() -> None:
    rungs = path_ladder(30.0, configured(DEADLINE__MODE="static"))

    assert [rung.deadline_s for rung in rungs] == [30.0, 5.0, 5.0, 20.0, 10.0, 5.5]
