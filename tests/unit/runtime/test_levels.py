"""Holds the rooms of the levels to their order, and to what moves them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.runtime.call import Criticality
from services.runtime.levels import LevelRules, Levels
from tests.unit.runtime.fake_time import START

LIMIT = 100


def rooms(levels: Levels, now: float = START, limit: int = LIMIT) -> list[int]:
    """Return the room of every level, lowest first."""
    return [levels.room(level, limit, now) for level in Criticality]


def refuse(levels: Levels, level: Criticality, times: int, *, inflight: int = LIMIT) -> None:
    """Refuse a level many times while lower ones are served."""
    for _ in range(times):
        levels.note_refused(level, inflight, 10, LIMIT)


@pytest.mark.parametrize(
    "wrong",
    [
        {"sheddable_ratio": 0.0},
        {"sheddable_ratio": 0.7},
        {"sheddable_plus_ratio": 0.9},
        {"critical_ratio": 1.1},
    ],
)
def test_parts_that_turn_the_order_around_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} = .*: write"):
        LevelRules(**wrong)


def test_each_level_begins_with_its_part() -> None:
    assert rooms(Levels(LevelRules())) == [50, 65, 80, 100]


def test_even_a_limit_of_one_lets_every_level_in_when_nobody_is_there() -> None:
    assert rooms(Levels(LevelRules()), limit=1) == [1, 1, 1, 1]


def test_a_refusal_of_the_highest_makes_the_lower_ones_give_way() -> None:
    levels = Levels(LevelRules())
    before = rooms(levels)

    refuse(levels, Criticality.CRITICAL_PLUS, 5)

    assert rooms(levels) == [50 - 10, 65 - 10, 80 - 10, 100]
    assert before[3] == 100


def test_a_refusal_of_a_middle_level_leaves_the_higher_ones_alone() -> None:
    levels = Levels(LevelRules())
    rooms(levels)

    refuse(levels, Criticality.SHEDDABLE_PLUS, 5)

    assert rooms(levels) == [40, 65, 80, 100]


def test_a_refusal_when_no_lower_level_is_served_moves_nothing() -> None:
    levels = Levels(LevelRules())

    for _ in range(50):
        levels.note_refused(Criticality.CRITICAL_PLUS, LIMIT, 0, LIMIT)

    assert rooms(levels) == [50, 65, 80, 100]


def test_what_is_kept_settles_where_one_call_in_two_hundred_is_refused() -> None:
    levels = Levels(LevelRules())
    rooms(levels)
    refuse(levels, Criticality.CRITICAL_PLUS, 1)

    for _ in range(200):
        levels.note_admitted(Criticality.CRITICAL_PLUS, 99, LIMIT)

    assert rooms(levels)[2] == pytest.approx(80, abs=1)


def test_calls_let_in_while_nobody_is_held_back_move_nothing() -> None:
    levels = Levels(LevelRules())

    for _ in range(2000):
        levels.note_admitted(Criticality.CRITICAL_PLUS, 20, LIMIT)

    assert rooms(levels) == [50, 65, 80, 100]


def test_time_brings_everything_back() -> None:
    levels = Levels(LevelRules())
    rooms(levels)
    refuse(levels, Criticality.CRITICAL_PLUS, 20)

    assert rooms(levels, START + 0.05)[2] == 40
    assert rooms(levels, START + 900) == [50, 65, 80, 100]


def test_a_refusal_beside_free_places_ends_the_pressure_at_once() -> None:
    levels = Levels(LevelRules())
    rooms(levels)
    refuse(levels, Criticality.CRITICAL, 30)
    squeezed = rooms(levels)[0]

    refuse(levels, Criticality.SHEDDABLE, 8, inflight=10)

    assert squeezed == 1
    assert rooms(levels)[0] >= 48


STEPS = st.lists(
    st.tuples(
        st.sampled_from(list(Criticality)), st.booleans(), st.integers(0, LIMIT), st.floats(0, 3)
    ),
    max_size=200,
)


@given(STEPS, st.integers(1, 300))
def test_a_higher_level_always_has_at_least_the_room_of_a_lower_one(
    steps: list[tuple[Criticality, bool, int, float]], limit: int
) -> None:
    levels = Levels(LevelRules())

    now = START
    for level, refused, inflight, step_s in steps:
        now += step_s
        if refused:
            levels.note_refused(level, inflight, inflight // 2, LIMIT)
        else:
            levels.note_admitted(level, inflight, LIMIT)
        found = rooms(levels, now, limit)
        assert found == sorted(found)
        assert found[0] >= 1
        assert found[-1] == limit
