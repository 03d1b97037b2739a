"""Shows which fault a request meets, by the seed and the clock."""

import itertools
from typing import Any

import pytest

from services.model.sim.faults import UnknownFaultError
from services.model.sim.selection import Asked, Choice, Selector
from services.runtime.clock import ManualClock


def asked(number: int = 1, **more: Any) -> Asked:
    fields: dict[str, Any] = {
        "request_id": f"r-{number}",
        "attempt": 1,
        "model": "m",
        "tenant": "",
        "stream": True,
    }
    return Asked(**{**fields, **more})


def selector(
    clock: ManualClock, *rules: str, queue: tuple[str, ...] = (), seed: int = 7
) -> Selector:
    made = Selector(seed, clock)
    made.replace(rules, queue)
    return made


def names(chooser: Selector, count: int, **more: Any) -> list[str]:
    return [chooser.choose(asked(number, **more)).rule.name for number in range(count)]


def test_header_then_model_then_words_then_queue_then_rules_decide(clock: ManualClock) -> None:
    chooser = selector(clock, "500", queue=("503",))

    def by(**more: Any) -> tuple[str, str]:
        choice: Choice = chooser.choose(asked(**more))
        return choice.by, choice.rule.name

    assert by(model="sim/stall", header="reset") == ("header", "reset")
    words = "Why? [sim: reset?at_token=2] Please."
    assert by(model="sim/stall?at_token=1", words=words) == ("model", "stall?at_token=1")
    assert by(words=words) == ("words", "reset?at_token=2")
    assert by(words="What does [sim] mean, or sim: reset?") == ("queue", "503")
    assert by() == ("rules", "500")


def test_words_that_name_no_fault_are_refused_with_a_hint(clock: ManualClock) -> None:
    with pytest.raises(UnknownFaultError, match="stall"):
        selector(clock).choose(asked(words="Hello. [sim: stal]"))


def test_a_request_may_ask_for_no_fault(clock: ManualClock) -> None:
    assert selector(clock, "500").choose(asked(header="none")).rule.fault.status == 200


def test_the_first_rule_that_meets_a_request_counts(clock: ManualClock) -> None:
    chooser = selector(clock, "429?tenant=acme", "503?model=big-*", "stall?stream=no")

    assert chooser.choose(asked(tenant="acme")).rule.fault.status == 429
    assert chooser.choose(asked(model="big-1")).rule.fault.status == 503
    assert chooser.choose(asked(stream=False)).rule.fault.ending == "stall"
    assert chooser.choose(asked()).rule.name == ""


def test_chance_is_the_seeds_and_the_requests(clock: ManualClock) -> None:
    first = names(selector(clock, "503?p=0.3"), 300)
    again = names(selector(clock, "503?p=0.3"), 300)
    other = names(selector(clock, "503?p=0.3", seed=8), 300)

    assert first == again
    assert first != other
    assert 60 < sum(map(bool, first)) < 120


def test_another_attempt_has_another_chance(clock: ManualClock) -> None:
    chooser = selector(clock, "503?p=0.5")

    met = [chooser.choose(asked(attempt=attempt)).rule.name for attempt in range(40)]

    assert len(set(met)) == 2


def test_a_rule_may_skip_some_and_meet_some(clock: ManualClock) -> None:
    met = names(selector(clock, "503?skip=2&times=3"), 8)

    assert [bool(name) for name in met] == [False] * 2 + [True] * 3 + [False] * 3


def test_bursts_come_together_and_replay(clock: ManualClock) -> None:
    rule = "503?burst_enter=0.05&burst_leave=0.2"
    met = [bool(name) for name in names(selector(clock, rule), 1000)]
    changes = sum(a != b for a, b in itertools.pairwise(met))

    assert met == [bool(name) for name in names(selector(clock, rule), 1000)]
    # A fifth is in bursts; by coin the same share would change 320 times.
    assert 100 < sum(met) < 320
    assert changes < 140


def test_flapping_sleeps_and_wakes_by_the_clock(clock: ManualClock) -> None:
    chooser = selector(clock, "flapping?up_s=5&down_s=2")
    met = []
    for _ in range(14):
        met.append(bool(chooser.choose(asked()).rule.name))
        clock.advance(1.0)

    assert met == ([False] * 5 + [True] * 2) * 2


def test_a_rule_that_cannot_be_read_changes_nothing(clock: ManualClock) -> None:
    chooser = selector(clock, "500")

    with pytest.raises(UnknownFaultError):
        chooser.replace(["503", "nonsense"])

    assert chooser.names()["rules"] == ["500"]


def test_a_model_that_names_no_fault_is_refused(clock: ManualClock) -> None:
    with pytest.raises(UnknownFaultError, match="stal"):
        selector(clock).choose(asked(model="sim/stal"))
