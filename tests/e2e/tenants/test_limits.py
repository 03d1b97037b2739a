"""Holds each tenant to what it may do, at both doors."""

import asyncio
import itertools

import pytest

from services.runtime.client import open_channel
from services.runtime.durations import to_duration
from services.runtime.orders import OPERATOR_KEY
from services.runtime.topology import GATEWAY
from sixhop.runtime.v1 import runtime_pb2
from sixhop.runtime.v1.runtime_pb2_grpc import RuntimeServiceStub
from sixhop.type.v1 import criticality_pb2
from tests.e2e.suite import START_TIMEOUT_S, WAIT_S, eventually
from tests.e2e.tenants.asking import DOORS, Asker, Door, ask_until, asking
from tests.e2e.tenants.house import OPERATOR, House
from tests.ports import free_ports
from tests.requirements import requirement


@requirement("tenants:limits-named")
@pytest.mark.parametrize("door", DOORS)
async def test_more_requests_than_allowed_are_told_which_limit_and_when_to_come_back(
    house: House, asker: Asker, door: Door
) -> None:
    key = house.key(f"rated_{door}")

    told = [await asker.ask(door, key) for _ in range(4)]

    assert [each.code for each in told] == ["OK", "OK", "OK", "QUOTA_EXCEEDED"]
    refused = told[-1]
    assert refused.details is not None
    assert refused.cause == refused.details["limit"] == "requests_per_minute"
    assert f"[tenants.rated_{door}]" in refused.message
    assert refused.retry_after_s is not None
    assert 0 < refused.retry_after_s <= 121
    if door == "http":
        assert refused.status == 429


@requirement("tenants:tokens-are-a-debt")
@pytest.mark.parametrize("door", DOORS)
async def test_what_a_run_has_used_is_owed(house: House, asker: Asker, door: Door) -> None:
    key = house.key(f"debtor_{door}")

    first = await asker.ask(door, key, agent="probe_stream")
    second = await asker.ask(door, key, agent="probe_stream")

    assert first.code == "OK", first
    assert (second.code, second.cause) == ("QUOTA_EXCEEDED", "tokens_per_minute")
    assert second.retry_after_s is not None
    assert second.retry_after_s > 0


@requirement("tenants:limits-named")
@pytest.mark.parametrize("door", DOORS)
async def test_so_many_runs_at_a_time_and_no_more(house: House, asker: Asker, door: Door) -> None:
    key, provider = house.key("narrow"), house.suite.provider
    before = len(provider.all_requests())
    provider.behave("silent")
    first = asyncio.ensure_future(asker.ask(door, key, agent="probe_six"))
    await eventually(
        lambda: provider.all_requests()[before:], WAIT_S, "the first run has come to the provider"
    )

    second = await asker.ask(door, key)
    # It needs no model, which is silent.
    other = await asker.ask(
        door, house.key("acme"), agent="probe_tool", question='search {"query": "warranty"}'
    )
    first.cancel()
    await asyncio.wait({first})
    provider.behave("at-once")

    assert (second.code, second.cause) == ("QUOTA_EXCEEDED", "max_concurrent_runs")
    assert other.code == "OK"
    await ask_until(asker, key, "OK")


@requirement("tenants:ceilings")
@pytest.mark.parametrize("door", DOORS)
async def test_a_level_above_the_ceiling_is_refused_as_what_it_may_be(
    house: House, asker: Asker, door: Door
) -> None:
    async with open_channel(house.suite.address(GATEWAY)) as channel:
        stub = RuntimeServiceStub(channel)
        order = runtime_pb2.OrderShedRequest(
            reason="a test",
            shed_duration=to_duration(30.0),
            up_to=criticality_pb2.CRITICALITY_SHEDDABLE,
            operator_name="test",
        )
        with_key = ((OPERATOR_KEY, OPERATOR),)
        await stub.OrderShed(order, timeout=5, metadata=with_key)
        try:
            humble = await asker.ask(door, house.key("humble"), level="CRITICAL_PLUS")
            acme = await asker.ask(door, house.key("acme"), level="CRITICAL_PLUS")
        finally:
            end = runtime_pb2.EndShedRequest(operator_name="test")
            await stub.EndShed(end, timeout=5, metadata=with_key)

    assert humble.code == "LOAD_SHED"
    assert acme.code == "OK"


@requirement("tenants:ceilings")
async def test_a_deadline_is_no_longer_than_the_tenant_may_have(house: House, asker: Asker) -> None:
    for door in DOORS:
        told = await asker.ask(door, house.key("hasty"))
        line = await house.suite.line(GATEWAY, told.run_id, "call_ended")
        assert line["given_ms"] == 4000


@requirement("tenants:agents-and-tools")
@pytest.mark.parametrize("door", DOORS)
async def test_only_allowed_agents_answer(house: House, asker: Asker, door: Door) -> None:
    key = house.key("picky")

    named = await asker.ask(door, key, agent="chat")
    # Any other tenant is answered by `chat`.
    routed = await asker.ask(door, key, agent="", question="Tell me a joke.")
    everybody = await asker.ask(door, house.key("acme"), agent="", question="Tell me a joke.")

    assert (named.code, named.cause) == ("PERMISSION_DENIED", "agents")
    assert "orders, probe_early" in named.message
    assert everybody.agent == "chat", everybody
    assert routed.agent in ("orders", "probe_early") or "profile" in routed.message, routed


@requirement("tenants:agents-and-tools")
async def test_only_allowed_agents_are_listed(house: House, asker: Asker) -> None:
    status, page = await asker.get("/v1/models", house.key("picky"))
    refused, _ = await asker.get("/v1/models")

    assert status == 200
    assert {each["id"] for each in page["data"]} == {"auto", "orders", "probe_early"}
    assert refused == 401


@requirement("tenants:agents-and-tools")
@pytest.mark.parametrize("door", DOORS)
async def test_a_tool_that_is_not_allowed_is_not_executed(
    house: House, asker: Asker, door: Door
) -> None:
    told = await asker.ask(
        door, house.key("picky"), agent="orders", question="Where is order 10248?"
    )

    assert (told.code, told.cause) == ("PERMISSION_DENIED", "tools")
    assert "profile" in told.message
    if door == "http":
        assert told.status == 403


@requirement("tenants:sizes")
@pytest.mark.parametrize("door", DOORS)
async def test_what_is_too_large_for_a_tenant_is_refused_with_its_limit(
    house: House, asker: Asker, door: Door
) -> None:
    key = house.key("small")

    long = await asker.ask(door, key, question="x" * 51)
    large = await asker.ask(door, key, question="x" * 100_001)
    fits = await asker.ask(door, key, question="x" * 50)

    assert (long.code, long.cause) == ("INVALID_ARGUMENT", "too_large")
    assert "max_prompt_chars in [tenants.small]" in long.message
    assert large.code == "INVALID_ARGUMENT"
    assert fits.code == "OK", fits
    if door == "http":
        assert (long.status, large.status) == (413, 413)
        assert "100,000 bytes" in large.message


@requirement("tenants:sizes")
async def test_of_a_strangers_body_no_more_is_read_than_a_small_request_has(asker: Asker) -> None:
    small = await asker.ask("http", "sk-sixhop-0-0", question="x" * 8000)
    large = await asker.ask("http", "sk-sixhop-0-0", question="x" * 500_000)

    assert (small.status, large.status) == (401, 401)
    assert small.cause == large.cause == "unknown_key"


@requirement("tenants:shared-limits")
async def test_two_gateways_hold_tenants_to_their_limits_together(
    house: House, asker: Asker
) -> None:
    grpc_port, http_port = free_ports(2)
    second = house.suite.child(GATEWAY).beside(
        "gateway_2",
        SIXHOP_GATEWAY__PORT=str(grpc_port),
        SIXHOP_GATEWAY__HTTP_PORT=str(http_port),
    )
    second.start()
    try:
        await eventually(
            lambda: [line for line in second.events() if line["event"] == "hop_serving"],
            START_TIMEOUT_S,
            "the second gateway serves",
        )
        address, url = f"127.0.0.1:{grpc_port}", f"http://127.0.0.1:{http_port}"
        async with asking(address, url) as other:
            both = itertools.cycle((asker, other))
            shared = [
                await next(both).ask(door, house.key("shared")) for door in DOORS for _ in range(4)
            ]
            spent = [
                await each.ask("grpc", house.key("spending"), agent="probe_stream")
                for each in (asker, other)
            ]
            acme = [await each.ask("grpc", house.key("acme")) for each in (asker, other)]
    finally:
        second.end()

    assert [each.code for each in shared] == ["OK"] * 5 + ["QUOTA_EXCEEDED"] * 3
    assert [each.cause for each in spent] == ["", "tokens_per_minute"]
    assert [each.code for each in acme] == ["OK", "OK"]


@requirement("tenants:redis-away")
async def test_without_redis_a_gateway_counts_for_itself_and_says_so_once(
    house: House, asker: Asker
) -> None:
    events = house.suite.child(GATEWAY).events
    house.redis.kill()
    try:
        told = [await asker.ask("grpc", house.key("orphan")) for _ in range(12)]
        (alone,) = [line for line in events() if line["event"] == "quota_alone"]
    finally:
        house.redis.start()
    async with asyncio.timeout(WAIT_S):
        while not [line for line in events() if line["event"] == "quota_shared"]:
            await asker.ask("grpc", house.key("orphan"))

    codes = [each.code for each in told]
    # What Redis may have been asked in vain before it was known to be away counts nowhere else.
    assert codes == ["OK"] * 8 + ["QUOTA_EXCEEDED"] * 4
    assert alone["level"] == "warning"


@requirement("tenants:flood")
@pytest.mark.parametrize("door", DOORS)
async def test_however_one_tenant_floods_another_is_served(
    house: House, asker: Asker, door: Door
) -> None:
    key = house.key(f"flooding_{door}")
    flood = [asyncio.ensure_future(asker.ask(door, key)) for _ in range(150)]
    served = [await asker.ask(door, house.key("acme")) for _ in range(10)]
    flooded = await asyncio.gather(*flood)

    assert [each.code for each in served] == ["OK"] * 10
    # Five by Redis, and as many by the gateway itself if Redis should have been silent for a while.
    assert len([each for each in flooded if each.code == "OK"]) <= 10
    refused = [each for each in flooded if each.code != "OK"]
    assert {each.code for each in refused} == {"QUOTA_EXCEEDED"}
    assert all(each.retry_after_s for each in refused)
