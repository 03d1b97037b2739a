"""Shows what a timeline puts in force, and when."""

import asyncio
from pathlib import Path

import pytest

from services.model.sim.script import (
    BadScriptError,
    Step,
    Timeline,
    load_script,
    make_script,
    play,
    read_script,
)
from services.runtime.clock import ManualClock

OUTAGE = """
[[step]]
at_s = 10
about = "brown-out"
slowdown = 4
faults = ["503?p=0.5"]

[[step]]
at_s = 30
about = "down"
down = true

[[step]]
at_s = 60
about = "well again"
"""


async def turn() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_steps_come_at_their_times(clock: ManualClock) -> None:
    seen: list[tuple[float, str]] = []

    def apply(step: Step) -> None:
        seen.append((clock.now() - 1000, step.about))

    playing = asyncio.create_task(play(Timeline(read_script(OUTAGE), clock), apply, clock))
    for _ in range(70):
        await turn()
        clock.advance(1.0)
    await asyncio.wait_for(playing, 5)

    assert seen == [(0, ""), (10, "brown-out"), (30, "down"), (60, "well again")]


def test_a_script_may_begin_with_the_first_request(clock: ManualClock) -> None:
    timeline = Timeline(read_script('start = "first-request"\n' + OUTAGE), clock)
    clock.advance(100)
    assert timeline.current().about == ""
    assert timeline.next_in_s() is None

    timeline.touch()
    clock.advance(12)

    assert timeline.current().about == "brown-out"
    assert timeline.next_in_s() == 18


def test_a_script_may_repeat(clock: ManualClock) -> None:
    timeline = Timeline(read_script("repeat_s = 70\n" + OUTAGE), clock)
    clock.advance(70 + 31)

    assert timeline.current().about == "down"

    clock.advance(34)
    assert timeline.current().about == "well again"
    assert timeline.next_in_s() == pytest.approx(5)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[step]\n", "no TOML"),
        ("[[step]]\nat_s = 1\nfaults = ['stal']\n", "did you mean stall"),
        ("[[step]]\nat_s = 5\n[[step]]\nat_s = 1\n", "order of at_s"),
        ("[[step]]\nat_s = -5\n", "greater than or equal to 0"),
        ("[[step]]\nat = 5\n", "step.0"),
    ],
)
def test_a_script_that_cannot_be_read_is_refused_with_the_place(text: str, said: str) -> None:
    with pytest.raises(BadScriptError, match=said):
        read_script(text)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadScriptError, match="nothing"):
        load_script(tmp_path / "nothing.toml")


def test_a_table_is_a_script_too() -> None:
    script = make_script({"step": [{"at_s": 1, "faults": [{"fault": "503", "p": 0.5}]}]})

    assert script.step[0].rules()[0].when.p == 0.5
