"""Shows what the simulator does besides its faults: speaking, steering, replaying."""

import asyncio
import json
from email.utils import parsedate_to_datetime
from typing import Any

import pytest

from services.model.sim.config import SimSettings
from services.model.sim.server import serving
from services.runtime.clock import MonotonicClock
from tests.integration.model.sim.raw import (
    ANSWER,
    PATIENCE_S,
    QUIET_S,
    chat,
    connected,
    control,
    post,
    simulated,
)
from tests.requirements import requirement

pytestmark = requirement("model-sim:steered-and-seen")


@requirement("model-sim:replays")
async def test_the_same_requests_and_seed_give_the_same_bytes_and_faults() -> None:
    rules = ("503?p=0.3", "malformed?p=0.3", "none?split_utf8=1")

    async def session(seed: int) -> list[bytes]:
        async with simulated(faults=rules, seed=seed, answer="", answer_tokens=9) as simulator:
            return [(await post(simulator, chat(), x_request_id=f"run-{i}")).raw for i in range(15)]

    first, again, other = await session(5), await session(5), await session(6)

    assert first == again
    assert first != other
    assert len({raw.split(b"\r\n")[0] for raw in first}) == 2


@requirement("model-sim:timeline")
async def test_a_script_takes_the_provider_down_and_brings_it_back() -> None:
    script = """
        start = "first-request"
        [[step]]
        at_s = 0.1
        about = "down"
        down = true
        [[step]]
        at_s = 0.4
        about = "brown-out"
        faults = ["503"]
        [[step]]
        at_s = 0.7
        about = "well"
    """
    async with simulated() as simulator:
        status, _ = await control(simulator, "POST", "/sim/script", script.encode())
        assert status == 200
        async with connected(simulator) as client:
            await client.send(chat(), x_sim_fault="stall")
            got = await client.receive()
        assert got.ended == "reset"
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", simulator.port)
        met = await until_answered(simulator)
        _, state = await control(simulator, "GET", "/sim/script")

    assert met[0] == 503
    assert met[-1] == 200
    assert state["step"]["about"] == "well"


async def until_answered(simulator: Any) -> list[int]:
    """Ask until an answer comes, and return the statuses on the way to it."""
    met: list[int] = []
    async with asyncio.timeout(PATIENCE_S):
        while 200 not in met:
            try:
                met.append((await post(simulator, chat())).status)
            except (ConnectionRefusedError, ConnectionResetError):
                await asyncio.sleep(0.01)
    return met


async def test_nothing_is_waited_for_where_nothing_has_come() -> None:
    async with simulated() as simulator:
        status, log = await control(simulator, "GET", "/sim/wait?idle=0&timeout_s=5")

    assert (status, log["requests"]) == (200, [])


async def test_a_date_to_come_back_at_is_no_sooner_than_the_log_says() -> None:
    asked_at = MonotonicClock().utc()
    async with simulated() as simulator:
        got = await post(simulator, chat(), x_sim_fault="retry-date")
        _, log = await control(simulator, "GET", "/sim/log")

    wait_s = log["requests"][0]["retry_after_s"]
    assert (parsedate_to_datetime(got.headers["retry-after"]) - asked_at).total_seconds() >= wait_s


async def test_the_users_last_words_ask_for_a_fault_where_they_may() -> None:
    first = {"role": "user", "content": "Hello! [sim: 503]"}
    last = {"role": "user", "content": "And now? [sim: 402]"}
    async with simulated() as obeying, simulated(obeys_words=False) as deaf:
        met = await post(obeying, {**chat(), "messages": [first, last]})
        _, log = await control(obeying, "GET", "/sim/log")
        well = await post(deaf, {**chat(), "messages": [first, last]})

    assert (met.status, well.status) == (402, 200)
    assert log["requests"][0]["chosen_by"] == "words"


async def test_refused_connections_come_back_by_themselves() -> None:
    async with simulated() as simulator:
        async with connected(simulator) as old:
            await control(simulator, "POST", "/sim/faults", b'{"refuse_s": 0.2}')
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.1", simulator.port)
            await old.send(chat())
            assert (await old.receive()).text == ANSWER
        assert await until_answered(simulator) == [200]


async def test_rules_and_a_queue_can_be_set_while_it_runs() -> None:
    async with simulated() as simulator:
        steer = {"rules": ["503?tenant=acme"], "queue": ["429?retry_after_s=1.2", "none"]}
        status, names = await control(simulator, "POST", "/sim/faults", json.dumps(steer).encode())
        statuses = [(await post(simulator, chat(user="acme"))).status for _ in range(3)]
        statuses.append((await post(simulator, chat(), x_sim_tenant="other")).status)
        wrong, complaint = await control(simulator, "POST", "/sim/faults", b'{"rules": ["stal"]}')

    assert status == 200
    assert names["queue"] == ["429?retry_after_s=1.2", "none"]
    assert statuses == [429, 200, 503, 200]
    assert wrong == 400
    assert "did you mean stall" in complaint["error"]["message"]


async def test_settings_can_be_changed_while_it_runs() -> None:
    async with simulated() as simulator:
        status, _ = await control(simulator, "POST", "/sim/settings", b'{"window": 5}')
        got = await post(simulator, chat(text="far too long a question for that"))
        fixed, _ = await control(simulator, "POST", "/sim/settings", b'{"port": 5}')
        wrong, complaint = await control(simulator, "POST", "/sim/settings", b'{"windo": 5}')

    assert (status, got.status, fixed, wrong) == (200, 400, 400, 400)
    assert "did you mean window" in complaint["error"]["message"]


async def test_the_log_tells_what_happened_without_keys() -> None:
    async with simulated(api_key="secret") as simulator:
        await post(
            simulator,
            chat(max_tokens=50),
            x_request_id="run-1",
            authorization="Bearer secret",
            x_sixhop_deadline_ms="4000",
        )
        await post(simulator, chat(), x_request_id="run-1", authorization="Bearer wrong")
        status, log = await control(simulator, "GET", "/sim/log?request_id=run-1")
        _, waited = await control(simulator, "GET", "/sim/wait?arrived=2&ended=2&idle=1")
        late, _ = await control(simulator, "GET", "/sim/wait?arrived=3&timeout_s=0.01")

    first, second = log["requests"]
    assert (status, late) == (200, 504)
    assert (first["ended"], first["status"], first["tokens_written"]) == ("complete", 200, 5)
    assert (first["deadline_ms"], first["max_tokens"], first["attempt"]) == (4000, 50, 1)
    assert (second["ended"], second["status"], second["attempt"]) == ("refused", 401, 2)
    assert "secret" not in json.dumps(log)
    assert waited["request_count"] == 2


async def test_a_reset_forgets_all_that_was() -> None:
    async with simulated() as simulator:
        await control(simulator, "POST", "/sim/faults", b'{"rules": ["503"]}')
        await post(simulator, chat())
        await control(simulator, "POST", "/sim/reset", b"")
        got = await post(simulator, chat())
        _, log = await control(simulator, "GET", "/sim/log")

    assert got.text == ANSWER
    assert [record["number"] for record in log["requests"]] == [1]


async def test_models_health_and_tokens_are_told() -> None:
    async with simulated(models=("a", "b"), any_model=False) as simulator:
        await post(simulator, chat("a"))
        _, models = await control(simulator, "GET", "/v1/models")
        _, health = await control(simulator, "GET", "/v1/health")
        _, tokens = await control(simulator, "POST", "/tokenize", b'{"content": "a b c"}')
        unknown = await post(simulator, chat("c"))
        nowhere, _ = await control(simulator, "GET", "/v1/nothing")

    assert [model["id"] for model in models["data"]] == ["a", "b"]
    assert health["estimated_qps"] > 0
    assert health["avg_latency_ms"] >= 0
    assert len(tokens["tokens"]) == 3
    assert (unknown.status, nowhere) == (404, 404)


async def test_what_is_asked_beside_completions_may_be_missing_forbidden_or_hang() -> None:
    async with simulated(api_key="secret", serves_health=False) as simulator:
        missing, _ = await control(simulator, "GET", "/v1/health")
        forbidden, _ = await control(simulator, "GET", "/v1/models")
        await control(simulator, "POST", "/sim/settings", b'{"side_after_s": 3600}')
        with pytest.raises(TimeoutError):
            await control(simulator, "GET", "/v1/models", patience_s=QUIET_S)
        _, log = await control(simulator, "GET", "/sim/log")

    assert (missing, forbidden) == (404, 401)
    assert log["side_counts"] == {"/health": 1, "/models": 2}


async def test_reasoning_that_does_not_come_back_is_refused() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    lost: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [call]}
    user = {"role": "user", "content": "x"}

    def body(message: dict[str, Any]) -> dict[str, Any]:
        messages = [user, message, {"role": "tool", "tool_call_id": "1", "content": "4"}]
        return {**chat(), "messages": messages, "thinking": {"type": "enabled"}}

    async with simulated() as simulator:
        refused = await post(simulator, body(lost))
        taken = await post(simulator, body({**lost, "reasoning_content": ""}))

    assert refused.status == 400
    assert "reasoning_content" in refused.json["error"]["message"]
    assert taken.status == 200


async def test_a_prefill_is_continued_or_refused() -> None:
    messages = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "alpha beta"}]
    async with simulated() as simulator:
        continued = await post(simulator, {**chat(), "messages": messages})
        refused = await post(simulator, {**chat("sim/prefill-refusal"), "messages": messages})

    assert continued.text == " gamma delta epsilon"
    assert refused.status == 400


async def test_a_connection_serves_one_request_after_the_other() -> None:
    async with simulated() as simulator, connected(simulator) as client:
        for fault in ("none", "503", "eof", "none"):
            await client.send(chat(), x_sim_fault=fault)
            assert (await client.receive()).raw

    assert [record.connection for record in simulator.world.log.records] == [1] * 4


@pytest.mark.parametrize(
    "bad", [b"nonsense\r\n\r\n", b"POST / HTTP/1.1\r\ncontent-length: x\r\n\r\n"]
)
async def test_what_is_no_http_is_refused_and_closed(bad: bytes) -> None:
    async with simulated() as simulator, connected(simulator) as client:
        client.writer.write(bad)
        got = await client.receive()

    assert got.status == 400


async def test_a_body_in_chunks_is_read() -> None:
    data = json.dumps(chat()).encode()
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (data[:9], data[9:]))
    async with simulated() as simulator, connected(simulator) as client:
        client.writer.write(
            b"POST /v1/chat/completions HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n"
            + chunks
            + b"0\r\n\r\n"
        )
        got = await client.receive()

    assert got.text == ANSWER


async def test_a_request_that_cannot_be_read_is_in_the_log() -> None:
    async with simulated() as simulator:
        got = await post(simulator, {"model": "m"})
        unknown = await post(simulator, chat("sim/nonsense"))

    assert (got.status, unknown.status) == (400, 400)
    assert [record.refusal for record in simulator.world.log.records] == ["bad_request"] * 2


async def test_a_script_of_the_settings_plays_from_the_start_and_again_after_a_reset(
    tmp_path: Any,
) -> None:
    path = tmp_path / "down.toml"
    path.write_text('[[step]]\nat_s = 0\nfaults = ["503"]\n', encoding="utf-8")
    async with serving(SimSettings(script=path), MonotonicClock()) as simulator:
        first = await post(simulator, chat())
        await control(simulator, "POST", "/sim/script", b"[[step]]\nat_s = 0\nfaults = ['429']")
        second = await post(simulator, chat())
        await control(simulator, "POST", "/sim/reset", b"")
        third = await post(simulator, chat())

    assert [got.status for got in (first, second, third)] == [503, 429, 503]


async def test_a_flood_is_held_back_by_a_client_that_does_not_read() -> None:
    async with simulated(write_timeout_s=QUIET_S) as simulator, connected(simulator) as client:
        await client.send(chat(), x_sim_fault="flood")
        record = await simulator.world.log.wait_for(lambda log: log.reached("closed", 1))

    assert record.comments_written < 1000
