"""Holds a process to telling what it does, what it could still take, and what its policies do."""

import asyncio
from collections.abc import Iterable

import pytest

from services.runtime.call import Criticality, Fallback, Group, Identity, Inbound
from services.runtime.clock import ManualClock
from services.runtime.durations import to_seconds
from services.runtime.errors import LoadShedError, SelfBugError, SixhopError
from services.runtime.policies.self_ejection import Held
from services.runtime.process_state import ProcessState, resident_bytes
from services.runtime.statistics import MIN_SAMPLES
from sixhop.runtime.v1 import runtime_pb2
from sixhop.type.v1 import criticality_pb2
from tests.unit.runtime.fake_time import LoopClock
from tests.unit.runtime.policies.client_samples import failed, one, sql_call
from tests.unit.runtime.policies.samples import inbound
from tests.unit.runtime.policies.test_fallback import failing, giving
from tests.unit.runtime.processes import process_state

TENANTS = ("acme", "acme", "zeta")
ENFORCE = runtime_pb2.RULE_MODE_ENFORCE


def told(state: ProcessState) -> runtime_pb2.GetSnapshotResponse:
    """Return what a process tells."""
    return state.snapshot({"tools": "sql"}, 0.25)


def arriving(
    clock: ManualClock, level: Criticality = Criticality.CRITICAL, tenant: str = ""
) -> Inbound:
    """Return a call that arrives now."""
    call = inbound(10.0, arrived_at=clock.now())
    call.identity = Identity(tenant=tenant, criticality=level)
    return call


def enough_calls(state: ProcessState) -> None:
    """Let as many calls of half a second end as an estimate needs."""
    for _ in range(MIN_SAMPLES):
        state.activity.record(0.5, 0.0, failed=False)


async def serve(state: ProcessState, calls: Iterable[Inbound]) -> None:
    """Let calls in that do not end."""
    assert state.guards is not None
    for call in calls:
        await state.guards.admission(call).__aenter__()


async def test_a_process_tells_who_it_is_and_what_it_does(manual: ManualClock) -> None:
    state = process_state(manual, hop="tool")
    state.activity.inflight, state.activity.outgoing = 3, 2
    state.activity.record(2.0, 1.5, failed=False)
    state.activity.record(9.0, 0.0, failed=True)
    manual.advance(7.5)

    seen = told(state)

    assert (seen.hop, seen.pod, seen.ready, seen.detail) == ("tool", "tool-1", True, "")
    assert (seen.inflight_count, seen.outgoing_count) == (3, 2)
    assert (seen.call_count, seen.error_count) == (2, 1)
    assert to_seconds(seen.up_duration) == pytest.approx(7.5)
    assert dict(seen.attributes) == {"tools": "sql"}
    assert seen.resident_byte_count == pytest.approx(resident_bytes(), rel=0.5)


async def test_latencies_tell_waiting_apart_from_work(manual: ManualClock) -> None:
    state = process_state(manual)
    state.activity.record(2.0, 1.5, failed=False)

    seen = told(state)

    lengths = {
        name: to_seconds(getattr(seen, name))
        for name in (
            "avg_latency",
            "p50_latency",
            "p90_latency",
            "p99_latency",
            "max_last_latency",
            "avg_wait_latency",
            "p50_work_latency",
            "p90_work_latency",
            "path_latency",
        )
    }
    assert lengths == {
        "avg_latency": 2.0,
        "p50_latency": 2.0,
        "p90_latency": 2.0,
        "p99_latency": 2.0,
        "max_last_latency": 2.0,
        "avg_wait_latency": 1.5,
        "p50_work_latency": 0.5,
        "p90_work_latency": 0.5,
        "path_latency": 0.25,
    }


async def test_without_the_engine_nothing_is_told_of_policies(manual: ManualClock) -> None:
    seen = told(process_state(manual, engine=False))

    assert not seen.engine_enabled
    for name in ("admission", "shed", "ejection", "event_loop", "estimated_qps"):
        assert not seen.HasField(name), name
    assert not seen.bulkheads
    assert not seen.dependencies


async def test_the_estimate_is_the_free_places_of_an_ordinary_call_by_the_median_latency(
    manual: ManualClock,
) -> None:
    state = process_state(manual, LIMIT__MAX_INFLIGHT="100")
    enough_calls(state)
    await serve(state, [arriving(manual) for _ in range(20)])

    # CRITICAL may use 80 of the 100 places.
    assert state.estimated_qps() == pytest.approx((80 - 20) / 0.5)
    assert told(state).estimated_qps == pytest.approx(120.0)


async def test_the_estimate_of_a_full_process_is_zero(manual: ManualClock) -> None:
    state = process_state(manual, LIMIT__MAX_INFLIGHT="10")
    state.activity.record(0.5, 0.0, failed=False)
    await serve(state, [arriving(manual) for _ in range(8)])

    assert state.estimated_qps() == 0.0
    assert told(state).HasField("estimated_qps")


@pytest.mark.parametrize(
    ("up_to", "takes"), [(Criticality.SHEDDABLE_PLUS, True), (Criticality.CRITICAL, False)]
)
async def test_the_estimate_is_zero_while_the_door_refuses_ordinary_calls(
    manual: ManualClock, up_to: Criticality, takes: bool
) -> None:
    state = process_state(manual)
    enough_calls(state)
    assert state.guards is not None
    state.guards.shed.order("too much", 60.0, up_to)

    assert bool(state.estimated_qps()) is takes


async def test_a_door_that_is_not_the_gateways_narrows_nothing(manual: ManualClock) -> None:
    state = process_state(manual, hop="tool")
    state.activity.record(0.5, 0.0, failed=False)
    assert state.guards is not None
    state.guards.shed.order("nobody asks this switch", 60.0)

    assert state.estimated_qps() != 0.0
    assert not told(state).HasField("shed")


async def test_the_estimate_of_a_process_that_is_not_ready_is_zero(manual: ManualClock) -> None:
    state = process_state(manual, engine=False)
    state.health.ready = False

    assert state.estimated_qps() == 0.0


@pytest.mark.parametrize(
    ("mode", "calls"),
    [("enforce", MIN_SAMPLES - 1), ("observe", MIN_SAMPLES), ("off", MIN_SAMPLES)],
)
async def test_an_estimate_that_nobody_can_make_is_unset(
    manual: ManualClock, mode: str, calls: int
) -> None:
    state = process_state(manual, ADMISSION__LIMIT=mode)
    for _ in range(calls):
        state.activity.record(0.5, 0.0, failed=False)

    assert not told(state).HasField("estimated_qps")


async def test_the_gate_tells_its_limit_its_rules_and_how_it_is_shared(
    manual: ManualClock,
) -> None:
    state = process_state(manual, LIMIT__MAX_INFLIGHT="4", LIMIT__ALGORITHM="fixed")
    await serve(state, [arriving(manual, Criticality.CRITICAL_PLUS, t) for t in TENANTS])
    with pytest.raises(LoadShedError):
        await serve(state, [arriving(manual, Criticality.SHEDDABLE)])

    gate = told(state).admission

    assert (gate.limit, gate.limit_kind, gate.inflight_count) == (4, "fixed", 3)
    assert [(rule.rule, rule.mode) for rule in gate.rules] == [
        ("estimate", runtime_pb2.RULE_MODE_OBSERVE),
        ("limit", ENFORCE),
        ("fair_share", ENFORCE),
    ]
    assert dict(gate.rules[1].rejected_counts) == {"SHEDDABLE": 1}
    assert [level.room_count for level in gate.levels] == [2, 2, 3, 4]
    assert gate.levels[3].level == criticality_pb2.CRITICALITY_CRITICAL_PLUS
    assert (gate.levels[3].inflight_count, gate.levels[3].tenant_count) == (3, 2)
    assert "acme" not in str(gate), "anybody may ask, so tenants are counted and not named"


async def test_the_gate_tells_who_waits_for_a_place(manual: ManualClock) -> None:
    state = process_state(manual, LIMIT__MAX_INFLIGHT="4", LIMIT__ALGORITHM="fixed")
    highest = Criticality.CRITICAL_PLUS
    await serve(state, [arriving(manual, highest, t) for t in (*TENANTS, "acme")])
    assert state.guards is not None
    waiting = asyncio.create_task(
        state.guards.admission(arriving(manual, highest, "zeta")).__aenter__()
    )
    await asyncio.sleep(0)

    gate = told(state).admission
    waiting.cancel()
    await asyncio.wait([waiting])
    left = told(state).admission

    assert (gate.waiting_count, gate.waited_count, gate.inflight_count) == (1, 1, 4)
    assert (left.waiting_count, left.waited_count, left.inflight_count) == (0, 1, 4)


async def test_an_order_is_told_with_its_reason_its_end_and_who_gave_it(
    manual: ManualClock,
) -> None:
    state = process_state(manual)
    assert state.guards is not None
    state.guards.shed.order("the database moves", 60.0, operator="ada@desk")
    manual.advance(15.0)
    with pytest.raises(LoadShedError):
        await state.guards.shed(arriving(manual)).__aenter__()

    door = told(state).shed

    assert door.state == runtime_pb2.DOOR_STATE_CLOSED
    assert (door.order.reason, door.order.operator_name) == ("the database moves", "ada@desk")
    assert door.order.up_to == criticality_pb2.CRITICALITY_CRITICAL_PLUS
    assert to_seconds(door.order.remaining_duration) == pytest.approx(45.0)
    assert door.order.end_time.ToSeconds() == int(manual.utc().timestamp() + 45)
    assert [(rule.rule, dict(rule.rejected_counts)) for rule in door.rules] == [
        ("operator", {"CRITICAL": 1}),
        ("overload", {}),
    ]


@pytest.mark.parametrize(
    ("up_to", "state_of_door"),
    [
        (None, runtime_pb2.DOOR_STATE_OPEN),
        (Criticality.SHEDDABLE, runtime_pb2.DOOR_STATE_NARROWED),
        (Criticality.CRITICAL_PLUS, runtime_pb2.DOOR_STATE_CLOSED),
    ],
)
async def test_a_door_is_open_narrowed_or_closed(
    manual: ManualClock, up_to: Criticality | None, state_of_door: int
) -> None:
    state = process_state(manual)
    assert state.guards is not None
    if up_to is not None:
        state.guards.shed.order("too much", 60.0, up_to)

    assert told(state).shed.state == state_of_door


async def test_a_process_that_has_taken_itself_out_of_service_tells_until_when(
    manual: ManualClock,
) -> None:
    state = process_state(manual)
    assert state.guards is not None
    error: SixhopError = SelfBugError("broken", cause="defect")
    for _ in range(3):
        entry = state.guards.ejection(arriving(manual))
        await entry.__aenter__()
        await entry.__aexit__(type(error), error, None)
    manual.advance(10.0)

    ejection = told(state).ejection

    assert (ejection.ejected, ejection.ejection_count) == (True, 1)
    assert to_seconds(ejection.remaining_duration) == pytest.approx(20.0)


async def test_the_lag_of_the_event_loop_is_told(manual: ManualClock) -> None:
    state = process_state(manual)
    for lag_s in (0.9, 0.3, 0.4):
        state.lag.sample(lag_s)

    loop = told(state).event_loop

    assert to_seconds(loop.lag_duration) == pytest.approx(0.4)
    assert to_seconds(loop.worst_lag_duration) == pytest.approx(0.9)
    assert loop.lagging


async def test_what_has_held_the_event_loop_up_is_told(manual: ManualClock) -> None:
    state = process_state(manual)
    before, never = state.fingerprint(), told(state).event_loop
    state.lag.held(Held(3.0, manual.now(), "ExecuteTool slow at slow.py:9 in run"))
    manual.advance(12.0)

    loop = told(state).event_loop

    assert (never.held_count, never.HasField("held_duration")) == (0, False)
    assert (loop.held_count, loop.held_by) == (1, "ExecuteTool slow at slow.py:9 in run")
    assert to_seconds(loop.held_duration) == pytest.approx(3.0)
    assert to_seconds(loop.held_age_duration) == pytest.approx(12.0)
    assert state.fingerprint() != before


async def test_bulkheads_tell_permits_callees_and_how_many_tenants_but_not_which(
    manual: ManualClock,
) -> None:
    state = process_state(manual)
    assert state.policies is not None
    call = sql_call(arrived_at=manual.now())
    call.inbound.identity = Identity(tenant="acme")
    await state.policies.bulkhead(call).__aenter__()

    groups = {each.group: each for each in told(state).bulkheads}

    assert set(groups) == {group.value for group in Group}
    core = groups["core"]
    assert (core.mode, core.permit_count, core.max_queued_count) == (ENFORCE, 64, 256)
    assert (core.inflight_count, core.admitted_count, core.tenant_count) == (1, 1, 1)
    assert dict(core.callee_inflight_counts) == {"tool/sql": 1}
    assert "acme" not in str(core)
    assert told(state).queued_count == 0


async def test_a_callee_is_told_with_its_breaker_its_budgets_and_its_timeout(
    manual: ManualClock,
) -> None:
    state = process_state(manual, HEDGE__KEYS="tool/sql", RETRY__NOT_FOR="tool/sql")
    assert state.policies is not None
    policies = state.policies
    for number in range(10):
        error = failed() if number < 3 else None
        call = sql_call(arrived_at=manual.now())
        policies.adaptive.limits(call)
        await one(policies.adaptive, manual, 0.1, error, call)
        await one(policies.breakers, manual, 0.1, error, call)

    async def attempt() -> str:
        return "answer"

    await policies.hedge(sql_call(), attempt)
    await policies.retry(sql_call(), attempt)
    manual.advance(5.0)
    (callee,) = told(state).dependencies

    assert callee.key == "tool/sql"
    assert (callee.breaker_state, callee.trip_count) == (runtime_pb2.BREAKER_STATE_OPEN, 1)
    assert (callee.breaker_reason, callee.breaker_epoch) == ("failure_ratio", 1)
    assert to_seconds(callee.breaker_state_duration) == pytest.approx(5.0)
    assert to_seconds(callee.probe_duration) == pytest.approx(25.0)
    assert callee.retry_tokens == pytest.approx(10.0)
    assert not callee.HasField("expected_latency")
    assert (callee.hedge.call_count, callee.hedge.HasField("delay_duration")) == (1, False)
    assert callee.adaptive_timeout.sample_count == 7
    assert to_seconds(callee.adaptive_timeout.p50_latency) == pytest.approx(0.1)
    assert callee.adaptive_timeout.frozen
    assert to_seconds(callee.declared_timeout_duration) == 5.0


async def test_fallbacks_are_told_by_mechanism_for_each_callee_and_for_all(
    clock: LoopClock,
) -> None:
    state = process_state(clock)
    assert state.policies is not None
    call = sql_call(alternatives=(giving(clock, Fallback.SKIP),))
    await one(state.policies.breakers, ManualClock(), call=call)

    await state.policies.fallback(call, failing(clock, failed()))

    seen = told(state)
    assert dict(seen.fallback_counts) == {"skip": 1}
    assert dict(seen.dependencies[0].fallback_counts) == {"skip": 1}
