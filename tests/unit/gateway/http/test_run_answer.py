"""Holds what is told of runs to its types, and files to being nothing but files."""

import pytest
from pydantic import TypeAdapter

from gateway.http.run_addresses import artifact_address, run_address
from gateway.http.run_answer import file_headers, page, whole
from gateway.http.run_told import RunPage, RunWhole
from gateway.runs.reading import Found
from services.runtime.clock import ManualClock
from services.runtime.errors import LoadShedError
from sixhop.type.v1 import chat_pb2, run_pb2
from tests.requirements import requirement
from tests.unit.gateway.runs.made import Gateway, file, finished, kept, text

DEGRADED = run_pb2.RunEvent(degraded=run_pb2.Degraded(mechanism="cache", part="prose"))
CALL = run_pb2.RunEvent(tool_call=chat_pb2.ToolCall(id="a", name="sql", arguments="{}"))


@requirement("http:document-is-true")
def test_a_run_is_told_as_its_type_says_whatever_became_of_it(clock: ManualClock) -> None:
    gateway = Gateway(clock)
    full = gateway.ended("full", text("a"), DEGRADED, CALL, finished(file(), sources=["s"]))
    gateway.begin("lives")
    gateway.book.after(gateway.begin("failed"), LoadShedError("full", cause="limit"))
    gateway.book.after(gateway.arrive("refused"), LoadShedError("full", cause="limit"))
    runs = list(gateway.memory)

    told = {run.record.run_id: whole(run) for run in runs}
    listed = page(Found(runs, False), 2)

    for each in told.values():
        TypeAdapter(RunWhole).validate_python(each, strict=True)
    TypeAdapter(RunPage).validate_python(listed, strict=True)
    assert told["full"]["answer"] == {
        "text": "a",
        "tool_calls": [{"id": "a", "name": "sql", "arguments": "{}"}],
        "sources": ["s"],
        "finish_reason": "",
    }
    assert told["full"]["artifacts"][0]["url"] == "/v1/runs/full/artifacts/report.pdf"
    assert [told[name]["answer"] for name in ("lives", "failed", "refused")] == [None] * 3
    assert (len(listed["data"]), listed["next"]) == (
        2,
        f"{runs[1].record.started_ms}-{runs[1].record.run_id}",
    )
    assert not full.live


@requirement("runs:files")
def test_what_a_failed_run_said_is_no_answer(clock: ManualClock) -> None:
    gateway = Gateway(clock)
    inbound = gateway.begin()
    gateway.tell(inbound, text("Half of"))

    gateway.book.after(inbound, LoadShedError("full", cause="limit"))

    assert whole(kept(inbound))["answer"] is None


@requirement("runs:files")
@pytest.mark.parametrize(
    ("media_type", "content_type", "how"),
    [
        ("application/pdf", "application/pdf", "inline"),
        ("image/png", "image/png", "inline"),
        ("image/svg+xml", "image/svg+xml", "attachment"),
        ("text/html", "text/html; charset=utf-8", "attachment"),
        ("text/html\r\nx: y", "application/octet-stream", "attachment"),
        ("", "application/octet-stream", "attachment"),
    ],
)
def test_a_browser_runs_no_file(media_type: str, content_type: str, how: str) -> None:
    headers = file_headers('a "b"/报告.pdf\r\n', media_type)

    assert headers["content-type"] == content_type
    assert headers["content-disposition"] == (
        f"{how}; filename*=UTF-8''a%20%22b%22%2F%E6%8A%A5%E5%91%8A.pdf%0D%0A"
    )
    assert headers["x-content-type-options"] == "nosniff"
    assert ("content-security-policy" in headers) is (how == "attachment")


@requirement("runs:files")
def test_names_cannot_leave_their_place_in_an_address() -> None:
    assert run_address("../a?b") == "/v1/runs/..%2Fa%3Fb"
    assert artifact_address("r", "../a b.pdf") == "/v1/runs/r/artifacts/..%2Fa%20b.pdf"
