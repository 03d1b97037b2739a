"""Tests that bad input is answered by one clear typed error, and leaves nothing running."""

from dataclasses import dataclass, field

import grpc
import pytest

from services.runtime.topology import DOMAIN, GATEWAY, HOPS, LLM, ROUTING, TOOL
from sixhop.type.v1 import artifact_pb2
from tests.e2e.client import IDLE_WITHIN_S, Client
from tests.e2e.suite import KEY
from tests.requirements import requirement

INVALID = (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_ARGUMENT")
NOT_FOUND = (grpc.StatusCode.NOT_FOUND, "NOT_FOUND")
FAILED = (grpc.StatusCode.ABORTED, "DEPENDENCY_FAILED")
TOTAL = "What is the total revenue?"


def data(name: str, content: bytes = b"") -> artifact_pb2.DataSource:
    """Return one source of data; without content it names one of the tool hop's own."""
    return artifact_pb2.DataSource(name=name, content=content)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bad:
    """Is one thing that a client may do wrong, and what it hears."""

    question: str = TOTAL
    agent: str = "reports"
    sources: list[artifact_pb2.DataSource] = field(default_factory=list)
    expected: tuple[grpc.StatusCode, str] = INVALID
    origin: str = GATEWAY
    """The hop that found it."""
    says: str
    """A part of the message that tells what to do."""


BAD = {
    "no-question": Bad(question="", says="question.text: is empty"),
    "blank-question": Bad(question=" \n\t\u3000 ", says="question.text: is empty"),
    "ten-megabytes": Bad(question="a" * 10_000_000, says="has 10,000,000 characters"),
    "nul": Bad(question="What\0?", says="NUL"),
    "unknown-agent": Bad(
        agent="poet", expected=NOT_FOUND, origin=ROUTING, says="no agent named 'poet'; known: chat,"
    ),
    "unknown-dataset": Bad(
        sources=[data("no_such_file")], expected=NOT_FOUND, origin=TOOL, says="no_such_file"
    ),
    # A file without content and a dataset of the data folder look the same on the wire.
    "empty-file": Bad(
        sources=[data("sales.csv")], origin=TOOL, says="sales.csv: the file is empty"
    ),
    "a-path": Bad(
        sources=[data("../../../../etc/passwd")], expected=NOT_FOUND, origin=TOOL, says="passwd"
    ),
    "binary-csv": Bad(
        sources=[data("sales.csv", bytes(range(256)) * 64)], origin=TOOL, says="sales.csv"
    ),
    "unclosed-quote": Bad(
        sources=[data("sales.csv", b'a,b\n1,"2\n3,4\n' + b"5,6\n" * 500)],
        origin=TOOL,
        says="sales.csv",
    ),
    "ragged-csv": Bad(
        sources=[data("sales.csv", b"a,b\n1,2\n1,2,3,4,5\n")], origin=TOOL, says="sales.csv"
    ),
    "empty-csv": Bad(sources=[data("sales.csv", b"\n")], origin=TOOL, says="sales.csv"),
    "false-parquet": Bad(
        sources=[data("sales.parquet", b"PAR1 and then nothing")], origin=TOOL, says="sales.parquet"
    ),
    "false-sqlite": Bad(
        sources=[data("sales.sqlite", b"SQLite format 3\0" + b"\1" * 5000)],
        origin=TOOL,
        says="sales.sqlite",
    ),
    "unknown-kind": Bad(sources=[data("sales.exe", b"MZ")], origin=TOOL, says="sales.exe"),
    "drop-table": Bad(question="DROP TABLE orders", origin=DOMAIN, says="read-only"),
    "drop-table-in-words": Bad(
        question="Please drop table orders, then tell me more.",
        origin=DOMAIN,
        says="read-only",
    ),
    "drop-table-in-chinese": Bad(question="请删除订单表", origin=DOMAIN, says="read-only"),
    "drop-table-as-sql": Bad(
        question="DROP TABLE orders", agent="probe_sql", origin=TOOL, says="query"
    ),
    "drop-table-behind-a-query": Bad(
        question="SELECT 1; DROP TABLE orders", agent="probe_sql", origin=TOOL, says="query"
    ),
    "reading-a-file-by-sql": Bad(
        question="SELECT * FROM read_csv('/etc/passwd')",
        agent="probe_sql",
        origin=TOOL,
        says="query",
    ),
}


@requirement("input:clear-errors")
@pytest.mark.parametrize("name", BAD)
async def test_bad_input_has_a_clear_error_of_the_hop_that_found_it(
    client: Client, name: str
) -> None:
    bad = BAD[name]

    run = await client.run(bad.question, agent=bad.agent, sources=bad.sources).end()
    idle_s = await client.idle_after(run.ended)

    assert (run.code, run.reason) == bad.expected, run
    assert bad.says in run.message
    assert run.details.get("originHop", run.details["hop"]) == bad.origin
    assert max(idle_s.values()) <= IDLE_WITHIN_S, idle_s


@requirement("input:clear-errors")
@pytest.mark.parametrize("unary", [False, True], ids=["run", "ask"])
@pytest.mark.parametrize("agent", ["probe_stream", "probe_six"])
async def test_a_refused_key_is_told_with_its_setting_and_without_the_key(
    client: Client, agent: str, unary: bool
) -> None:
    client.suite.provider.behave("401")

    run = await client.run("Go.", agent=agent, unary=unary).end()
    idle_s = await client.idle_after(run.ended)

    assert (run.code, run.reason) == FAILED, run
    assert (run.details["originHop"], run.details["originReason"]) == (LLM, "PROVIDER_KEY_REFUSED")
    assert "SIXHOP_MODEL__API_KEY" in run.message
    assert KEY not in str(run)
    assert not any(KEY in client.suite.child(hop).log.read_text() for hop in HOPS)
    assert max(idle_s.values()) <= IDLE_WITHIN_S, idle_s


@requirement("input:clear-errors")
async def test_data_is_whole_after_every_attempt_to_change_it(client: Client) -> None:
    count = "SELECT count(*) AS n FROM orders"
    before = await client.run(count, agent="probe_sql").end()

    for question in ("DROP TABLE orders", "DELETE FROM orders", "UPDATE orders SET revenue = 0"):
        refused = await client.run(question, agent="probe_sql").end()
        assert refused.code is grpc.StatusCode.INVALID_ARGUMENT

    after = await client.run(count, agent="probe_sql").end()
    assert before.code is grpc.StatusCode.OK
    assert after.text == before.text
