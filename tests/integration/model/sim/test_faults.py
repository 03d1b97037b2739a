"""Shows on the wire what every fault does to a stream and to an answer in one."""

from collections.abc import Callable

import pytest

from services.model.sim.vocabulary import FAULTS
from tests.integration.model.sim.expected import EXPECTED, cut, headers_alone, quiet, rule
from tests.integration.model.sim.raw import ANSWER, QUIET_S, Got, chat, post, simulated
from tests.requirements import requirement

pytestmark = requirement("model-sim:faults-on-the-wire")


def test_every_fault_is_looked_at() -> None:
    assert set(EXPECTED) == set(FAULTS)


@pytest.mark.parametrize("name", FAULTS)
async def test_a_stream_meets_its_fault(name: str) -> None:
    async with simulated() as simulator:
        got = await post(simulator, chat(), quiet_s=quiet(name), x_sim_fault=rule(name))
        [record] = simulator.world.log.records

    expected = EXPECTED[name]
    assert expected.holds(got), got
    assert got.ended == expected.ended
    assert record.fault == rule(name)


@pytest.mark.parametrize("name", [n for n, e in EXPECTED.items() if e.same_in_one])
async def test_an_answer_in_one_meets_the_same(name: str) -> None:
    async with simulated() as simulator:
        body = chat(stream=False)
        got = await post(simulator, body, quiet_s=quiet(name), x_sim_fault=rule(name))

    assert EXPECTED[name].holds(got), got
    assert got.ended == EXPECTED[name].ended


HALVES = [n for n in FAULTS if n.startswith(("reset", "fin", "stall", "eof")) and "header" not in n]


@pytest.mark.parametrize("name", [n for n in HALVES if "finish" not in n and "termin" not in n])
async def test_an_answer_in_one_is_cut_in_the_middle(name: str) -> None:
    async with simulated() as simulator:
        body = chat(stream=False)
        changed = f"{name}?keep_alive_s=0" if "keep" in name else name
        got = await post(simulator, body, quiet_s=QUIET_S, x_sim_fault=changed)

    assert got.status == 200
    with pytest.raises(ValueError, match=r"."):
        assert got.json
    assert got.whole == (name in ("eof", "eof-at-once"))
    assert got.ended == EXPECTED["stall" if name == "stall-keep-alive" else name].ended


@pytest.mark.parametrize(
    ("name", "holds"),
    [
        ("none", lambda got: got.json["choices"][0]["message"]["content"] == ANSWER),
        ("reasoning", lambda got: got.json["choices"][0]["message"]["reasoning_content"]),
        ("error-event", lambda got: got.json["error"]["message"] == "the engine died"),
        ("malformed", lambda got: got.body.startswith(b'{"choices": [{"delta"')),
        ("overloaded", lambda got: "insufficient" in got.json["choices"][0]["finish_reason"]),
        ("no-finish", lambda got: got.json["choices"][0]["finish_reason"] is None),
        ("no-usage", lambda got: "usage" not in got.json),
        ("one-byte", lambda got: got.json["choices"][0]["finish_reason"] == "stop"),
        ("html", lambda got: got.body.startswith(b"<html>")),
    ],
)
async def test_an_answer_in_one_shows_what_it_can(name: str, holds: Callable[[Got], bool]) -> None:
    async with simulated() as simulator:
        got = await post(simulator, chat(stream=False), x_sim_fault=name)

    assert got.whole
    assert holds(got), got


async def test_a_request_without_a_stream_is_kept_alive_by_empty_lines() -> None:
    fault = "keep-alive-forever?keep_alive_s=0.01&hold_s=0.1"
    async with simulated() as simulator:
        got = await post(simulator, chat(stream=False), x_sim_fault=fault)

    assert got.ended == "eof"
    assert len(got.body) > 3
    assert set(got.body) == set(b"\n")


async def test_a_fault_may_come_after_a_time_instead_of_a_token() -> None:
    fault = "reset?after_s=0.1&first_token_after_s=0&token_interval_s=0.001&tokens=2000&text=a"
    async with simulated() as simulator:
        got = await post(simulator, chat(), x_sim_fault=fault)

    assert got.ended == "reset"
    assert len(got.choices) > 5
    assert not got.finishes


async def test_a_fault_may_come_while_the_first_token_is_waited_for() -> None:
    async with simulated() as simulator:
        got = await post(simulator, chat(), x_sim_fault="fin?after_s=0.05&first_token_after_s=60")

    assert headers_alone(got)
    assert got.ended == "eof"


async def test_faults_can_be_joined_on_the_wire() -> None:
    async with simulated() as simulator:
        got = await post(
            simulator, chat(), x_sim_fault="crlf+bom+stall?at_token=2", quiet_s=QUIET_S
        )

    assert cut(got, "alpha beta")
    assert got.body.startswith(b"\xef\xbb\xbfdata")
    assert b"\r\n\r\n" in got.body
