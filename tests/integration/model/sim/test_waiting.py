"""Shows who waits for the simulator and how, and that whoever leaves frees what he held."""

from typing import Any

import pytest

from tests.integration.model.sim.raw import ANSWER, chat, connected, control, post, simulated
from tests.requirements import requirement
from tests.waiting import until

HANG = "stall?at_token=1"


@requirement("model-sim:client-gone")
@pytest.mark.parametrize(
    "fault", ["silent", "slow-first-token", "stall", "none?token_interval_s=9"]
)
@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_leaves_is_noticed_and_its_slot_is_free(
    fault: str, stream: bool
) -> None:
    async with simulated(max_concurrency=1) as simulator:
        world = simulator.world
        async with connected(simulator) as client:
            await client.send(chat(stream=stream), x_sim_fault=fault)
            await world.log.wait_for(lambda log: log.reached("arrived", 1))
        record = await world.log.wait_for(lambda log: log.reached("closed", 1))

        assert record.ended == "client_left"
        assert record.client_left_ms is not None
        assert (world.slots.inflight, world.slots.queued) == (0, 0)
        assert (await post(simulator, chat())).text == ANSWER


@requirement("model-sim:client-gone")
async def test_a_client_that_leaves_the_queue_gives_its_place_back() -> None:
    async with simulated(max_concurrency=1) as simulator:
        world = simulator.world
        async with connected(simulator) as working:
            await working.send(chat(), x_sim_fault=HANG)
            await world.log.wait_for(lambda log: log.reached("streaming", 1))
            async with connected(simulator) as waiting:
                await waiting.send(chat())
                await until(lambda: world.slots.queued == 1)
            await until(lambda: world.slots.queued == 0)
            assert world.slots.inflight == 1
        await until(lambda: world.slots.inflight == 0)


@requirement("model-sim:client-gone")
async def test_a_deaf_provider_works_on_in_vain_and_the_log_counts_it() -> None:
    fault = "deaf?token_interval_s=0.005&tokens=60"
    async with simulated() as simulator:
        async with connected(simulator) as client:
            await client.send(chat(), x_sim_fault=fault)
            await simulator.world.log.wait_for(lambda log: log.reached("streaming", 1))
        record = await simulator.world.log.wait_for(lambda log: log.reached("ended", 1))
        _, verdict = await control(simulator, "GET", "/verdict")

    assert record.tokens_written == 60
    assert 0 < record.tokens_in_vain < 60
    assert "work_after_leaving" in verdict["grade"]


@requirement("model-sim:queue")
async def test_a_stream_waits_with_comments_and_is_answered_in_its_turn() -> None:
    async with simulated(max_concurrency=1, keep_alive_interval_s=0.01) as simulator:
        async with connected(simulator) as working, connected(simulator) as waiting:
            await working.send(chat(), x_sim_fault=HANG)
            await simulator.world.log.wait_for(lambda log: log.reached("streaming", 1))
            await waiting.send(chat())
            await simulator.world.log.wait_for(lambda log: log.reached("arrived", 2))
            record = await commented(simulator)
            working.close()
            got = await waiting.receive()

    assert got.body.count(b": keep-alive\n\n") >= 2
    assert got.text == ANSWER
    assert record.queued_ms > 0


async def commented(simulator: Any) -> Any:
    record = simulator.world.log.records[-1]
    await until(lambda: record.comments_written >= 2)
    return record


@requirement("model-sim:queue")
async def test_a_request_without_a_stream_waits_with_empty_lines() -> None:
    async with simulated(max_concurrency=1, keep_alive_interval_s=0.01) as simulator:
        async with connected(simulator) as working, connected(simulator) as waiting:
            await working.send(chat(), x_sim_fault=HANG)
            await simulator.world.log.wait_for(lambda log: log.reached("streaming", 1))
            await waiting.send(chat(stream=False))
            await simulator.world.log.wait_for(lambda log: log.reached("arrived", 2))
            await commented(simulator)
            working.close()
            got = await waiting.receive()

    assert got.body.startswith(b"\n\n")
    assert got.json["choices"][0]["message"]["content"] == ANSWER


@requirement("model-sim:queue")
async def test_who_waits_too_long_is_closed() -> None:
    async with simulated(max_concurrency=1, queue_timeout_s=0.05) as simulator:
        async with connected(simulator) as working:
            await working.send(chat(), x_sim_fault=HANG)
            await simulator.world.log.wait_for(lambda log: log.reached("streaming", 1))
            got = await post(simulator, chat())

    assert (got.ended, got.events) == ("eof", [])
    assert simulator.world.log.records[-1].ended == "queue_timeout"


@requirement("model-sim:queue")
async def test_without_a_queue_the_limit_of_concurrency_refuses() -> None:
    async with simulated(max_concurrency=1, max_queued=0) as simulator:
        async with connected(simulator) as working:
            await working.send(chat(), x_sim_fault=HANG)
            await simulator.world.log.wait_for(lambda log: log.reached("streaming", 1))
            got = await post(simulator, chat())

    assert got.status == 429
