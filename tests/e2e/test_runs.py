"""Tests the runs of a gateway over HTTP: started, watched, cancelled, found again, with files."""

import asyncio
import io
import signal
import time
from collections.abc import AsyncIterator

import grpc
import pytest
import pytest_asyncio
from pypdf import PdfReader

from services.runtime.topology import GATEWAY
from tests.e2e.client import IDLE_WITHIN_S, Client
from tests.e2e.suite import WAIT_S
from tests.e2e.watching import Seen, Watcher, watching
from tests.requirements import requirement

SLOW = "normal?token_count=400&chunk_interval_s=0.05"
"""An answer that takes twenty seconds."""


@pytest_asyncio.fixture
async def watcher(client: Client) -> AsyncIterator[Watcher]:
    """Return who looks at the runs of the suite that all tests share."""
    async with watching(client.suite.url) as opened:
        yield opened


def numbers(events: list[Seen]) -> list[int | None]:
    """Return the numbers of events."""
    return [event.id for event in events]


async def first_text(watcher: Watcher, path: str) -> None:
    """Wait until a run has begun to answer."""
    async for event in watcher.watch(path):
        if event.name == "text_delta":
            return


@requirement("runs:go-on", "runs:events", "runs:every-door")
async def test_a_run_goes_on_by_itself_and_its_answer_is_there_afterwards(
    watcher: Watcher,
) -> None:
    path = await watcher.start(agent="probe_six")

    events = await watcher.events(path)
    run = await watcher.get(path)

    assert [event.name for event in events][0:2] == ["accepted", "routed"]
    assert [event.name for event in events][-2:] == ["finished", "ended"]
    assert numbers(events) == list(range(1, len(events) + 1))
    texts = [event.data["text"] for event in events if event.name == "text_delta"]
    assert run["status"] == "ok"
    assert run["answer"]["text"] == "".join(texts) != ""
    assert run["question"] == {"text": None, "char_count": 3, "source_count": 0}
    assert {hop["hop"] for hop in run["hops"]} == {"routing", "domain", "tool", "model", "llm"}
    assert events[-1].data == run


@requirement("runs:go-on")
@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"question": ""}, "question.text"),
        ({"question": "Go.", "language": "tlh"}, "question.language"),
        ({"question": "Go.", "sources": [{"name": "a.csv", "content_base64": "%"}]}, "sources[0]"),
        ({"question": "Go.", "sources": [{"name": "a.csv", "content_base64": "é"}]}, "sources[0]"),
        ({"question": "Go.", "wrong": 1}, "wrong"),
        ({}, "question"),
    ],
)
async def test_a_run_that_cannot_begin_is_refused_at_once(
    watcher: Watcher, body: dict[str, object], field: str
) -> None:
    status, _, told = await watcher.ask("POST", "/v1/runs", json=body)

    assert status == 400
    assert told["error"]["param"].startswith(field)


@requirement("runs:go-on")
async def test_a_run_has_the_deadline_of_its_client_and_not_that_of_a_proxy(
    watcher: Watcher,
) -> None:
    headers = {"x-sixhop-deadline-ms": "7000", "x-envoy-expected-rq-timeout-ms": "300"}

    _, _, told = await watcher.ask(
        "POST", "/v1/runs", json={"question": "Go.", "agent": "probe_stream"}, headers=headers
    )
    run = await watcher.ended(told["links"]["self"])

    assert (run["status"], run["budget_ms"]) == ("ok", 7000)


@requirement("runs:every-door")
async def test_runs_of_every_door_are_found_the_newest_first(
    client: Client, watcher: Watcher
) -> None:
    streamed = await client.run("Go.", agent="probe_stream").end()
    asked = await client.run("Go.", agent="probe_six", unary=True).end()
    refused = await client.run("", agent="probe_six").end()
    body = {"model": "probe_stream", "messages": [{"role": "user", "content": "Go."}]}
    _, _, completion = await watcher.ask("POST", "/v1/chat/completions", json=body)
    path = await watcher.start(agent="probe_stream")
    await watcher.events(path)

    page = await watcher.get("/v1/runs?limit=5")
    found = {run["id"]: run for run in page["data"]}

    assert [run["id"] for run in page["data"]] == [
        path.rpartition("/")[2],
        completion["sixhop"]["run_id"],
        refused.run_id,
        asked.run_id,
        streamed.run_id,
    ]
    assert [run["status"] for run in page["data"]] == ["ok", "ok", "failed", "ok", "ok"]
    assert found[refused.run_id]["error"]["reason"] == "INVALID_ARGUMENT"
    assert found[asked.run_id]["method"] == "Ask"
    assert (await watcher.get(f"/v1/runs/{asked.run_id}"))["answer"]["text"] == asked.text
    assert len(await watcher.events(f"/v1/runs/{streamed.run_id}")) == len(streamed.events) + 1


@requirement("runs:every-door")
async def test_a_list_goes_on_where_another_ended_and_takes_only_what_is_wanted(
    client: Client, watcher: Watcher
) -> None:
    for _ in range(3):
        await client.run("Go.", agent="probe_stream").end()
    await client.run("Go.", agent="nobody").end()

    first = await watcher.get("/v1/runs?agent=probe_stream&limit=2")
    second = await watcher.get(f"/v1/runs?agent=probe_stream&limit=2&before={first['next']}")
    failed = await watcher.get("/v1/runs?status=failed&limit=1")
    status, _, told = await watcher.ask("GET", "/v1/runs?limit=0")

    ids = [run["id"] for run in first["data"] + second["data"]]
    assert len(set(ids)) == len(ids) == 4
    assert {run["agent"] for run in first["data"] + second["data"]} == {"probe_stream"}
    assert failed["data"][0]["error"]["reason"] == "NOT_FOUND"
    assert (status, told["error"]["param"]) == (400, "limit")


@requirement("runs:events")
async def test_a_reader_comes_back_in_the_middle_and_after_the_end(
    client: Client, watcher: Watcher
) -> None:
    client.suite.provider.behave("normal?token_count=80&chunk_interval_s=0.03")
    path = await watcher.start(agent="probe_stream")
    other = asyncio.create_task(watcher.events(path))
    head: list[Seen] = []
    async for event in watcher.watch(path):
        head.append(event)
        if len(head) == 5:
            break

    live = await watcher.get(path)
    tail = await watcher.events(path, after=5)
    again = await watcher.events(path, after=5)
    whole = await other
    ended = await watcher.ask("GET", f"{path}/events", headers={"Last-Event-ID": str(whole[-1].id)})

    assert (live["status"], live["answer"]) == ("running", None)
    assert head + tail == whole
    assert again == tail
    assert numbers(whole) == list(range(1, len(whole) + 1))
    # A browser's own reader comes again for ever, unless it is told so.
    assert ended[0] == 204


@requirement("runs:go-on", "http:drain")
async def test_a_run_comes_to_its_end_when_its_gateway_is_told_to_stop(
    client: Client, watcher: Watcher
) -> None:
    gateway = client.suite.child(GATEWAY)
    client.suite.provider.behave("normal?token_count=20&chunk_interval_s=0.05")
    path = await watcher.start(agent="probe_stream")
    seen: list[Seen] = []

    async for event in watcher.watch(path):
        if not seen:
            gateway.send(signal.SIGTERM)
        seen.append(event)
    code = gateway.wait(WAIT_S)

    assert [event.name for event in seen][-2:] == ["finished", "ended"]
    assert (seen[-1].data["status"], code) == ("ok", 0)


@requirement("runs:cancelled", "cancel:reaches-the-provider")
async def test_a_run_that_is_cancelled_leaves_nothing_behind(
    client: Client, watcher: Watcher
) -> None:
    client.suite.provider.behave(SLOW)
    path = await watcher.start(agent="probe_stream")
    await first_text(watcher, path)

    gone_at = time.monotonic()
    status, _, told = await watcher.ask("DELETE", path)
    idle_s = await client.idle_after(gone_at)
    run = await watcher.ended(path)
    again, _, _ = await watcher.ask("DELETE", path)

    assert (status, told["status"], again) == (202, "running", 200)
    assert max(idle_s.values()) <= IDLE_WITHIN_S, idle_s
    assert (run["status"], run["error"]["reason"]) == ("cancelled", "RUN_CANCELLED")
    assert run["answer"] is None
    request = await client.suite.provider.left(run["request_id"])
    assert request["ended"] == "client_closed"


@requirement("runs:cancelled")
@pytest.mark.parametrize("unary", [False, True], ids=["run", "ask"])
async def test_whoever_waits_for_a_run_that_is_cancelled_is_told(
    client: Client, watcher: Watcher, unary: bool
) -> None:
    client.suite.provider.behave(SLOW)
    running = client.run("Go.", agent="probe_stream", unary=unary, deadline_s=15.0)
    ending = asyncio.create_task(running.end())
    await client.suite.provider.asked(running.seen.run_id, chunk_count=1)

    status, _, _ = await watcher.ask("DELETE", f"/v1/runs/{running.seen.run_id}")
    run = await ending

    assert status == 202
    assert (run.code, run.reason) == (grpc.StatusCode.CANCELLED, "RUN_CANCELLED"), run
    await client.suite.provider.left(run.run_id)


@requirement("runs:every-door")
async def test_a_run_whose_client_goes_is_kept_as_cancelled(
    client: Client, watcher: Watcher
) -> None:
    client.suite.provider.behave(SLOW)
    running = client.run("Go.", agent="probe_stream")
    path = f"/v1/runs/{running.seen.run_id}"
    await running.until(lambda event: event.HasField("text_delta"))

    running.call.cancel()
    run = await watcher.ended(path)

    assert (run["status"], run["error"], run["answer"]) == ("cancelled", None, None)


@requirement("runs:files")
async def test_the_report_of_a_run_opens_as_a_pdf(watcher: Watcher) -> None:
    path = await watcher.start("What was the revenue by region?", agent="reports", language="en")
    run = await watcher.ended(path)
    (pdf,) = [each for each in run["artifacts"] if each["media_type"] == "application/pdf"]

    async with watcher.session.get(pdf["url"]) as answer:
        content, headers = await answer.read(), answer.headers

    assert len(PdfReader(io.BytesIO(content)).pages) >= 1
    assert (headers["content-type"], len(content)) == ("application/pdf", pdf["byte_count"])
    assert headers["content-disposition"] == f"inline; filename*=UTF-8''{pdf['name']}"
    assert headers["x-content-type-options"] == "nosniff"
    status, _, told = await watcher.ask("GET", f"{path}/artifacts/other.pdf")
    assert (status, told["error"]["reason"]) == (404, "NOT_FOUND")


@requirement("runs:files")
async def test_the_files_of_a_completion_have_addresses(watcher: Watcher) -> None:
    body = {
        "model": "reports",
        "messages": [{"role": "user", "content": "What was the revenue by region?"}],
    }
    _, _, completion = await watcher.ask("POST", "/v1/chat/completions", json=body)

    for each in completion["sixhop"]["artifacts"]:
        async with watcher.session.get(each["url"]) as answer:
            assert answer.status == 200
            assert len(await answer.read()) == each["byte_count"]
    assert completion["sixhop"]["artifacts"]


@requirement("runs:own-tenant")
@pytest.mark.parametrize(
    ("method", "tail"),
    [
        ("GET", ""),
        ("DELETE", ""),
        ("GET", "/events"),
        ("GET", "/artifacts/a.pdf"),
    ],
)
async def test_a_run_that_nobody_knows_is_not_found(
    watcher: Watcher, method: str, tail: str
) -> None:
    status, _, told = await watcher.ask(method, f"/v1/runs/none{tail}")

    assert (status, told["error"]["reason"]) == (404, "NOT_FOUND")
    assert told["error"]["details"]["name"] == "none"


@requirement("runs:own-tenant")
async def test_nobody_lists_the_runs_of_another_tenant(watcher: Watcher) -> None:
    status, _, told = await watcher.ask("GET", "/v1/runs?tenant=other")

    assert (status, told["error"]["reason"]) == (403, "PERMISSION_DENIED")


@requirement("runs:looks-are-no-runs")
async def test_looks_do_not_count_as_calls(client: Client, watcher: Watcher) -> None:
    before = await client.snapshot(GATEWAY)

    for _ in range(20):
        await watcher.get("/v1/runs")
    after = await client.snapshot(GATEWAY)

    assert after.call_count == before.call_count
    assert after.inflight_count == 0
