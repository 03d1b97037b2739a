"""Tests the HTTP door against clients that mean harm, or are broken."""

import asyncio
import gzip
import json
import random
import signal
import socket
from collections.abc import AsyncIterator, Iterator

import psutil
import pytest

from tests.e2e.suite import Suite, running_suite
from tests.requirements import requirement

LIMIT_S = 10.0
"""Far above every limit that the door has here."""
SCALED = {
    "SIXHOP_GATEWAY__HTTP_HEAD_TIMEOUT_S": "0.5",
    "SIXHOP_GATEWAY__HTTP_BODY_TIMEOUT_S": "0.5",
    "SIXHOP_GATEWAY__HTTP_UNREAD_TIMEOUT_S": "0.5",
    "SIXHOP_GATEWAY__MAX_BODY_BYTES": "100000",
    "SIXHOP_GATEWAY__DRAIN_TIMEOUT_S": "2",
}
POST = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
GROWTH_BYTES = 8 * 1024 * 1024
"""What hundreds of bad clients may leave behind in the process."""


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """Return a suite whose door waits for half a second and not for many."""
    with running_suite(tmp_path_factory.mktemp("hostile"), **SCALED) as started:
        yield started


@pytest.fixture(autouse=True)
async def _answers(suite: Suite) -> AsyncIterator[None]:
    """Hold the door to answering after whatever a test has done to it."""
    suite.provider.behave("at-once")
    yield
    assert (await said(suite, b"GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"))[
        0
    ] == 200


def resident_bytes(suite: Suite) -> int:
    """Return the memory of the gateway."""
    return psutil.Process(suite.child("gateway").pid).memory_info().rss


async def connected(suite: Suite) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return a connection to the door."""
    host, port = suite.url.removeprefix("http://").split(":")
    return await asyncio.open_connection(host, int(port), limit=2**24)


async def said(suite: Suite, *parts: bytes) -> tuple[int, bytes]:
    """Send bytes, and return the status and all that comes until the door closes."""
    reader, writer = await connected(suite)
    try:
        async with asyncio.timeout(LIMIT_S):
            for part in parts:
                writer.write(part)
                await writer.drain()
            answer = await reader.read()
    except ConnectionError:
        answer = b""
    finally:
        writer.close()
    return (int(answer[9:12]) if answer.startswith(b"HTTP/1.1 ") else 0), answer


def asking(body: bytes, *headers: bytes) -> bytes:
    """Return a request for a completion."""
    head = [b"content-length: %d" % len(body), b"connection: close", *headers]
    return POST + b"\r\n".join(head) + b"\r\n\r\n" + body


def question(**more: object) -> bytes:
    """Return the body of a request that is as it should be."""
    return json.dumps(
        {"model": "probe_stream", "messages": [{"role": "user", "content": "Go."}], **more}
    ).encode()


@requirement("http:bounded-head")
async def test_headers_that_come_byte_by_byte_end_their_connection(suite: Suite) -> None:
    reader, writer = await connected(suite)
    writer.write(b"GET /livez HTTP/1.1\r\nx-slow: ")

    async def drip() -> None:
        while True:
            writer.write(b"a")
            await writer.drain()
            await asyncio.sleep(0.02)

    dripping = asyncio.create_task(drip())
    async with asyncio.timeout(LIMIT_S):
        answer = await reader.readline()
    dripping.cancel()
    await asyncio.wait({dripping})
    writer.close()

    assert answer.startswith(b"HTTP/1.1 408 ")


@requirement("http:bounded-head")
async def test_a_connection_that_asks_nothing_is_closed(suite: Suite) -> None:
    status, _ = await said(suite)

    assert status == 408


@requirement("http:bounded-head")
async def test_ten_thousand_bytes_of_headers_pass_and_a_hundred_thousand_do_not(
    suite: Suite,
) -> None:
    start = b"GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"

    passed = await said(suite, start + b"x-long: " + b"a" * 10_000 + b"\r\n\r\n")
    refused = await said(suite, start, *([b"x-long: " + b"a" * 1000 + b"\r\n"] * 100), b"\r\n")

    assert (passed[0], refused[0]) == (200, 431)


@requirement("http:bounded-body")
async def test_a_body_that_is_half_sent_is_refused_in_time(suite: Suite) -> None:
    status, answer = await said(suite, POST + b'content-length: 5000\r\n\r\n{"model"')

    assert status == 408
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["cause"] == "too_slow"


@requirement("http:bounded-body")
@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_that_is_too_large_is_refused(suite: Suite, chunked: bool) -> None:
    large = question(padding="a" * 200_000)
    length = POST + b"content-length: %d\r\n\r\n" % len(large)
    streamed = POST + b"transfer-encoding: chunked\r\n\r\n"
    pieces = [
        b"%x\r\n%b\r\n" % (len(large[at : at + 9000]), large[at : at + 9000])
        for at in range(0, len(large), 9000)
    ]
    reader, writer = await connected(suite)

    writer.write(b"".join([streamed, *pieces, b"0\r\n\r\n"]) if chunked else length + large)
    async with asyncio.timeout(LIMIT_S):
        answer = await reader.readline()
    writer.close()

    assert answer.startswith(b"HTTP/1.1 413 ")


@requirement("http:bounded-body")
async def test_a_gzip_bomb_is_not_unpacked(suite: Suite) -> None:
    bomb = gzip.compress(b" " * 50_000_000)

    status, answer = await said(suite, asking(bomb, b"content-encoding: gzip"))

    assert status == 415
    assert b"content-encoding" in answer


@requirement("http:survives")
@pytest.mark.parametrize(
    "body",
    [
        b"\xff\xfe\x00",
        b'{"messages": [{"role": "user", "content": "\xc3\x28"}]}',
        b"",
        b"[" * 50_000,
        b'{"messages": [{"role": "user", "content": "\\ud800"}]}',
    ],
    ids=["no-json", "invalid-utf8", "empty", "deep", "lone-surrogate"],
)
async def test_a_body_that_is_no_text_is_refused(suite: Suite, body: bytes) -> None:
    status, answer = await said(suite, asking(body))

    assert status == 400, answer
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["reason"] == "INVALID_ARGUMENT"


@requirement("http:survives")
@pytest.mark.parametrize("chunks", [b"zz\r\n", b"2\r\n{}garbage\r\n", b"-1\r\n"])
async def test_a_body_in_broken_chunks_is_refused(suite: Suite, chunks: bytes) -> None:
    status, answer = await said(suite, POST + b"transfer-encoding: chunked\r\n\r\n" + chunks)

    assert status == 400, answer
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["reason"] == "INVALID_ARGUMENT"


@requirement("http:survives")
async def test_garbage_in_a_pipeline_ends_its_connection_alone(suite: Suite) -> None:
    chance = random.Random(7)
    one = b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n"
    before = resident_bytes(suite)

    answers = await asyncio.gather(
        *(said(suite, one * 20 + chance.randbytes(2000)) for _ in range(50)),
        *(said(suite, chance.randbytes(2000)) for _ in range(50)),
        *(said(suite, one * 5000 + b"\r\n\0") for _ in range(3)),
    )

    assert {status for status, _ in answers} <= {0, 200, 400, 408}
    assert resident_bytes(suite) - before < GROWTH_BYTES


@requirement("http:survives")
async def test_garbage_after_a_request_takes_no_answer_from_it(suite: Suite) -> None:
    garbage = b"\x00\xff\x16\x03garbage\r\n\r\n"

    answers = [
        await said(suite, b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n" + garbage) for _ in range(5)
    ]
    status, answer = await said(
        suite, asking(question()).replace(b"close", b"keep-alive") + garbage
    )

    assert [status for status, _ in answers] == [200] * 5
    assert status == 200
    assert b'"finish_reason"' in answer
    assert not [line for line in suite.child("gateway").events() if line["event"] == "defect"]


@requirement("http:slow-reader")
async def test_a_client_that_does_not_read_its_stream_is_let_go(suite: Suite) -> None:
    long_word = "word" * 500
    suite.provider.behave(f"normal?token_count=100000&chunk_interval_s=0.005&text={long_word}")
    deaf = socket.socket()
    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    deaf.connect(("127.0.0.1", int(suite.url.rpartition(":")[2])))
    deaf.sendall(asking(question(stream=True), b"x-sixhop-run-id: unread"))

    request = await suite.provider.left("unread")

    assert request["ended"] == "client_closed"
    deaf.close()


@requirement("http:drain")
async def test_a_stream_that_fits_the_drain_ends_well_and_a_longer_one_is_told(
    suite: Suite,
) -> None:
    suite.provider.behave("normal?token_count=20&chunk_interval_s=0.05")
    short = asyncio.create_task(
        said(suite, asking(question(stream=True), b"x-sixhop-run-id: short"))
    )
    await suite.provider.asked("short", chunk_count=1)
    suite.provider.behave("normal?token_count=2000&chunk_interval_s=0.05")
    long = asyncio.create_task(said(suite, asking(question(stream=True), b"x-sixhop-run-id: long")))
    whole = asyncio.create_task(said(suite, asking(question(), b"x-sixhop-run-id: whole")))
    for run_id in ("long", "whole"):
        await suite.provider.asked(run_id, chunk_count=1)

    suite.child("gateway").send(signal.SIGTERM)
    ended = [await each for each in (short, long, whole)]
    code = suite.child("gateway").wait(LIMIT_S)
    suite.heal()

    assert ended[0][1].endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n"), ended[0][1][-200:]
    assert b'"cause":"draining"' in ended[1][1]
    assert b"[DONE]" not in ended[1][1]
    assert ended[2][0] == 503
    assert b"\r\nretry-after: 1\r\n" in ended[2][1]
    assert code == 0
