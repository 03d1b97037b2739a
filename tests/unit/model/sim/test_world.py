"""Shows what one simulated provider remembers, and what its chance comes from."""

from typing import Any, cast

import orjson
import pytest

from services.model.sim.asking import read_ask
from services.model.sim.config import SimSettings
from services.model.sim.door import Request
from services.model.sim.exchange import Exchange
from services.model.sim.log import MAX_BODIES
from services.model.sim.script import Step
from services.model.sim.wire import Wire
from services.model.sim.world import World
from services.runtime.clock import ManualClock
from services.runtime.config import ConfigError


def arrived(world: World, request_id: str = "r-1", **more: Any) -> Exchange:
    body = orjson.dumps({"model": "m", "messages": [{"role": "user", "content": "x"}], **more})
    request = Request("POST", "/", {"x-request-id": request_id}, body)
    ask = read_ask(body)
    return world.exchange(ask, world.arrive(request, ask, 1), cast(Wire, None), "")


def times(exchange: Exchange) -> list[float]:
    return [exchange.pace.first_token_s(0), *(exchange.pace.token_interval_s() for _ in range(9))]


def world(clock: ManualClock, **settings: Any) -> World:
    return World(SimSettings(**settings), clock)


def test_times_are_the_seeds_the_ids_and_the_attempts(clock: ManualClock) -> None:
    one, again, other = world(clock, seed=1), world(clock, seed=1), world(clock, seed=2)
    first, second = times(arrived(one)), times(arrived(one))

    assert [first, second] == [times(arrived(again)), times(arrived(again))]
    assert first != second
    assert first != times(arrived(other))
    assert first != times(arrived(one, "r-2"))


def test_a_seed_in_the_request_replays_its_times_whatever_came_before(clock: ManualClock) -> None:
    one = world(clock)

    assert times(arrived(one, "a", seed=5)) == times(arrived(one, "b", seed=5))
    assert times(arrived(one, "a", seed=5)) != times(arrived(one, "a", seed=6))


def test_what_came_before_changes_no_time(clock: ManualClock) -> None:
    busy, quiet = world(clock), world(clock)
    for number in range(20):
        arrived(busy, f"before-{number}")

    assert times(arrived(busy)) == times(arrived(quiet))


def test_a_script_slows_down_what_is_already_being_answered(clock: ManualClock) -> None:
    one = world(clock)
    exchange = arrived(one)
    assert exchange.factor == 1.0

    one.apply(Step(at_s=0, slowdown=4))

    assert exchange.factor == 4.0


def test_a_script_lends_fewer_slots_for_a_while(clock: ManualClock) -> None:
    one = world(clock, max_concurrency=8)

    one.apply(Step(at_s=0, max_concurrency=2))
    assert one.slots.limit == 2

    one.apply(Step(at_s=1))
    assert one.slots.limit == 8


def test_health_is_expected_first_and_then_measured(clock: ManualClock) -> None:
    one = world(clock, ttft_median_s=0.2, token_median_s=0.01, answer_tokens=80, max_concurrency=10)
    assert one.health()["avg_latency_ms"] == pytest.approx(1000)
    assert one.health()["estimated_qps"] == pytest.approx(10)

    one.answered(2.0)
    one.answered(4.0)

    assert one.health()["avg_latency_ms"] == 3000
    assert one.health()["estimated_qps"] == pytest.approx(3.333)


async def test_health_has_nothing_to_offer_when_all_slots_are_taken(clock: ManualClock) -> None:
    one = world(clock, max_concurrency=1)
    places = [one.slots.enter(), one.slots.enter()]

    health = one.health()

    assert (health["estimated_qps"], health["status"], health["queued"]) == (0, "busy", 1)
    for place in places:
        one.slots.leave(place)


def test_settings_change_and_what_only_a_start_reads_does_not(clock: ManualClock) -> None:
    one = world(clock)

    one.change({"max_concurrency": 3, "faults": ["503"]})

    assert one.slots.limit == 3
    assert one.selector.names()["rules"] == ["503"]
    with pytest.raises(ConfigError, match="at the start only"):
        one.change({"port": 1})
    with pytest.raises(ConfigError, match="did you mean window"):
        one.change({"windo": 1})


def test_only_the_latest_requests_are_kept_whole_and_only_so_many_at_all(
    clock: ManualClock,
) -> None:
    one = world(clock, max_log_count=MAX_BODIES + 50)
    for number in range(MAX_BODIES + 100):
        arrived(one, f"r-{number}")

    assert one.log.count == MAX_BODIES + 100
    assert len(one.log.records) == MAX_BODIES + 50
    assert [bool(record.body) for record in one.log.records] == [False] * 50 + [True] * MAX_BODIES


def test_a_reset_forgets_and_keeps_the_settings(clock: ManualClock) -> None:
    one = world(clock, faults=("503",))
    first = times(arrived(one))
    one.selector.replace(["stall"])

    one.log.end(one.log.records[0], "complete")
    one.reset()

    assert one.log.count == 0
    assert one.selector.names()["rules"] == ["503"]
    assert times(arrived(one)) == first
