"""Tests what a call over HTTP gives to the suite: its time, its names, and its end."""

import asyncio
import json
import re
import sys
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from services.runtime.topology import GATEWAY, MODEL
from tests.e2e.client import IDLE_WITHIN_S, Client
from tests.e2e.suite import WAIT_S, wait_until
from tests.processes import ROOT
from tests.requirements import requirement

DOCUMENTATION = ROOT / "docs" / "http.md"
WRITTEN = "http://127.0.0.1:7480"
"""Where the documentation has the door."""
RUN_TIMEOUT_S = 30.0
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PHASES = {
    "no-answer-yet": ("silent", 0),
    "no-token-yet": ("slow-first-chunk", 0),
    "mid-stream": ("normal?token_count=1000&chunk_interval_s=0.05", 3),
    "mid-stream-silence": ("stall", 3),
}
"""What the provider does, and after how many chunks the client goes."""
WHOLE = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


class Door:
    """Asks over HTTP, each time on a connection of its own."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        """Take a session, and where the door is."""
        self._session = session
        self._url = url

    async def ask(self, *, stream: bool, **headers: str) -> tuple[int, str, Mapping[str, str]]:
        """Return the status, the body and the headers of an answer; `_` is written as `-`."""
        async with self._session.post(
            f"{self._url}/v1/chat/completions",
            json={
                "model": "probe_stream",
                "messages": [{"role": "user", "content": "Go."}],
                "stream": stream,
            },
            headers={name.replace("_", "-"): text for name, text in headers.items()},
        ) as answer:
            return answer.status, await answer.text(), answer.headers.copy()


@pytest_asyncio.fixture
async def door(client: Client) -> AsyncIterator[Door]:
    """Return the HTTP door of the suite that all tests share."""
    connector = aiohttp.TCPConnector(force_close=True)
    async with aiohttp.ClientSession(connector=connector) as session:
        yield Door(session, client.suite.url)


def error_of(body: str) -> dict[str, Any]:
    """Return the error of an answer, or of the last event of a stream."""
    last = body.strip().rpartition("\n\n")[2]
    error: dict[str, Any] = json.loads(last.removeprefix("data: "))["error"]
    return error


@requirement("http:deadline")
@WHOLE
@pytest.mark.parametrize(
    "waits",
    [
        {"x_sixhop_deadline_ms": "1500"},
        {"x_envoy_expected_rq_timeout_ms": "1500"},
        {"grpc_timeout": "1500m"},
        {"grpc_timeout": "20S", "x_sixhop_deadline_ms": "1500"},
        {"x_envoy_expected_rq_timeout_ms": "0", "grpc_timeout": "1500000u"},
    ],
    ids=["ours", "envoy", "grpc", "shortest", "envoy-has-none"],
)
async def test_the_answer_comes_before_the_time_that_its_caller_told(
    client: Client, door: Door, waits: dict[str, str], stream: bool
) -> None:
    client.suite.provider.behave("silent")
    began = time.monotonic()

    status, body, headers = await door.ask(stream=stream, x_request_id="waits", **waits)

    assert time.monotonic() - began < 1.5
    error = error_of(body)
    assert (status, error["hop"]) == (504, "llm"), error
    assert 0 < error["remaining_ms"] < 1500
    assert headers["x-request-id"] == error["request_id"] == "waits"
    assert "given=" in headers["x-sixhop-hops"]


@requirement("http:deadline")
@pytest.mark.parametrize(
    ("waits", "least_ms", "most_ms"),
    [({}, 20_000, 30_000), ({"x_sixhop_deadline_ms": "36000000"}, 100_000, 120_000)],
    ids=["none", "ten-hours"],
)
async def test_a_deadline_that_is_missing_is_given_and_one_too_long_is_cut(
    client: Client, door: Door, waits: dict[str, str], least_ms: int, most_ms: int
) -> None:
    name = f"given-{most_ms}"

    status, _, _ = await door.ask(stream=True, x_sixhop_run_id=name, **waits)

    (asked,) = client.suite.provider.requests(name)
    assert status == 200
    assert least_ms < asked["deadline_ms"] < most_ms


@requirement("http:deadline")
@pytest.mark.parametrize(
    ("header", "text"),
    [
        ("x_sixhop_deadline_ms", "soon"),
        ("x_sixhop_deadline_ms", "-5"),
        ("grpc_timeout", "15"),
        ("x_sixhop_criticality", "URGENT"),
        ("x_sixhop_delivery", "fast"),
    ],
)
async def test_a_header_that_is_not_understood_is_refused_by_its_name(
    door: Door, header: str, text: str
) -> None:
    status, body, _ = await door.ask(stream=False, **{header: text})

    assert status == 400
    assert error_of(body)["param"] == header.replace("_", "-")


@requirement("http:names-travel")
@WHOLE
async def test_the_names_of_a_request_reach_the_provider_and_every_log(
    client: Client, door: Door, stream: bool
) -> None:
    name = f"named-{stream}"

    _, _, headers = await door.ask(
        stream=stream,
        x_request_id=name,
        x_sixhop_run_id=f"run-{name}",
        traceparent=f"00-{TRACE}-00f067aa0ba902b7-01",
    )

    assert headers["x-request-id"] == name
    assert headers["x-sixhop-run-id"] == f"run-{name}"
    assert len(client.suite.provider.requests(name)) == 1
    for hop in (GATEWAY, MODEL):
        line = await client.suite.line(hop, name, "call_ended")
        assert (line["run_id"], line["trace_id"]) == (f"run-{name}", TRACE)


@requirement("http:cancel")
@WHOLE
@pytest.mark.parametrize("phase", PHASES)
async def test_a_client_that_goes_is_gone_at_the_provider(
    client: Client, door: Door, phase: str, stream: bool
) -> None:
    behaviour, chunk_count = PHASES[phase]
    client.suite.provider.behave(behaviour)
    name = f"goes-{phase}-{stream}"
    asking = asyncio.create_task(door.ask(stream=stream, x_sixhop_run_id=name))
    await client.suite.provider.asked(name, chunk_count=chunk_count)

    gone_at = time.monotonic()
    asking.cancel()
    idle_s = await client.idle_after(gone_at)
    request = await client.suite.provider.left(name)

    assert max(idle_s.values()) <= IDLE_WITHIN_S, idle_s
    assert request["closed_ms"] / 1000 - gone_at <= IDLE_WITHIN_S
    assert request["ended"] == "client_closed"


@requirement("http:stream-errors")
@pytest.mark.parametrize("fault", ["truncate", "reset", "malformed", "in-band-error", "no-choices"])
async def test_a_stream_that_fails_ends_with_one_error_and_not_as_if_it_were_whole(
    client: Client, door: Door, fault: str
) -> None:
    client.suite.provider.behave(fault)

    status, body, _ = await door.ask(stream=True, x_request_id=f"fails-{fault}")

    error = error_of(body)
    assert (status, error["reason"], error["hop"]) == (200, "DEPENDENCY_FAILED", "llm")
    assert error["request_id"] == f"fails-{fault}"
    assert error["remaining_ms"] > 0
    assert body.startswith('data: {"id":"chatcmpl-')
    assert body.count('"error":') == 1
    assert "[DONE]" not in body
    assert '"finish_reason":"' not in body


@requirement("http:stream-errors")
async def test_a_buffered_stream_has_no_text_of_a_model_that_fails(
    client: Client, door: Door
) -> None:
    client.suite.provider.behave("truncate")

    status, body, _ = await door.ask(stream=True, x_sixhop_delivery="buffered")

    assert (status, error_of(body)["reason"]) == (502, "DEPENDENCY_FAILED")
    assert "chatcmpl" not in body


@requirement("http:json-only")
@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
async def test_a_body_that_does_not_say_that_it_is_json_is_not_read(
    client: Client, kind: str
) -> None:
    # What a page of anybody may send from a browser to a door on its reader's machine.
    async with aiohttp.ClientSession(skip_auto_headers=["content-type"]) as session:
        asked = session.post(
            f"{client.suite.url}/v1/chat/completions",
            data=b'{"messages": [{"role": "user", "content": "Go."}]}',
            headers={"content-type": kind} if kind else {},
        )
        async with asked as answer:
            status, body = answer.status, await answer.text()

    assert (status, error_of(body)["param"]) == (415, "content-type")


@requirement("http:every-answer-is-named")
@pytest.mark.parametrize(
    ("sent", "status"),
    [(b"no HTTP at all\r\n\r\n", 400), (b"GET / HTTP/1.1\r\nx: %s\r\n\r\n" % (b"y" * 70_000), 431)],
    ids=["garbage", "large-head"],
)
async def test_what_never_became_a_request_is_named_and_logged_all_the_same(
    client: Client, sent: bytes, status: int
) -> None:
    host, port = client.suite.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(sent)
    head, _, body = (await asyncio.wait_for(reader.read(), WAIT_S)).partition(b"\r\n\r\n")
    writer.close()

    name = error_of(body.decode())["request_id"]
    assert head.startswith(b"HTTP/1.1 %d " % status)
    assert f"x-request-id: {name}".encode() in head
    assert (await client.suite.line(GATEWAY, name, "call_failed"))["outcome"].endswith("ARGUMENT")


@requirement("http:documented")
async def test_the_documentation_asks_as_it_says(client: Client) -> None:
    text = DOCUMENTATION.read_text(encoding="utf-8").replace(WRITTEN, client.suite.url)
    blocks = re.findall(r"^```(sh|python)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    commands = {"sh": ["sh", "-ec"], "python": [sys.executable, "-c"]}

    told = [await run(*commands[kind], block) for kind, block in blocks]

    assert [kind for kind, _ in blocks] == ["sh", "python"]
    assert json.loads(told[0])["choices"][0]["finish_reason"] == "stop"
    assert told[1] == "The provider of the tests says that all is well."


async def run(*command: str) -> str:
    """Return what a command writes."""
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, complaints = await asyncio.wait_for(process.communicate(), RUN_TIMEOUT_S)
    assert process.returncode == 0, complaints.decode()
    return out.decode()


@requirement("http:every-answer-is-named")
async def test_what_is_refused_early_is_logged_once(client: Client, door: Door) -> None:
    status, _, headers = await door.ask(
        stream=False, x_request_id="early", x_sixhop_criticality="URGENT"
    )
    await door.ask(stream=False, x_request_id="after", x_sixhop_criticality="URGENT")

    def count(request_id: str) -> int:
        # By the field: an agent's name holds the word as well.
        lines = client.suite.child(GATEWAY).events(request_id)
        return sum(line.get("request_id") == request_id for line in lines)

    wait_until(lambda: count("after") > 0, WAIT_S, "the refusals are logged")
    assert (status, headers["x-request-id"], count("early")) == (400, "early", 1)
