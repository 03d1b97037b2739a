"""Holds every exception to its code and its reason on the wire, both ways."""

import grpc
import pytest
from google.rpc import error_details_pb2

from services.runtime.call import CURRENT, MAX_REPORTS, AttemptReport, Identity
from services.runtime.client import Dependency
from services.runtime.errors import (
    TABLE,
    DependencyFailedError,
    DependencyOverloadedError,
    InvalidArgumentError,
    LoadShedError,
    NotFoundError,
    SelfBugError,
    SixhopError,
)
from services.runtime.outgoing import own_work
from services.runtime.reports import decode_reports, encode_reports
from sixhop.model.v1 import model_pb2
from sixhop.model.v1.model_pb2_grpc import ModelServiceStub
from sixhop.tool.v1 import tool_pb2
from sixhop.tool.v1.tool_pb2_grpc import ToolServiceStub
from tests.contract.wire import (
    CLOCK,
    Peer,
    call_stream,
    call_unary,
    calling_babbler,
    calling_stranger,
    failing,
    infos,
    raising,
    rich_status,
    sample,
)
from tests.requirements import requirement

PASSED_ON = {
    "ALREADY_EXISTS",
    "INVALID_ARGUMENT",
    "NOT_FOUND",
    "NOT_SERVED_HERE",
    "PERMISSION_DENIED",
    "RUN_CANCELLED",
    "UNAUTHENTICATED",
    "BUDGET_TOO_SMALL",
}
OVERLOADS = {"LOAD_SHED", "BULKHEAD_FULL", "QUOTA_EXCEEDED", "DEPENDENCY_OVERLOADED"}


async def raw(peer: Peer, *, streaming: bool) -> grpc.aio.AioRpcError:
    """Return how a method fails without any policy of ours at the caller."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await (call_stream(peer) if streaming else call_unary(peer))
    return caught.value


async def through(dependency: Dependency, *, streaming: bool) -> SixhopError:
    """Return how a method fails for the hop that calls it."""
    with own_work("domain", "Test", 10.0, CLOCK), pytest.raises(SixhopError) as caught:
        await _call(dependency, streaming=streaming)
    return caught.value


@requirement("errors:table")
@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("reason", TABLE)
async def test_every_error_arrives_with_its_code_and_one_errorinfo(
    reason: str, streaming: bool
) -> None:
    async with failing(raising(sample(reason)), events=1) as peer:
        error = await raw(peer, streaming=streaming)

    status = rich_status(error)
    (info,) = infos(status)
    told = dict(info.metadata)
    assert error.code().value[0] == int(TABLE[reason].code) == status.code
    assert error.details() == status.message
    assert (info.reason, info.domain, told["hop"]) == (reason, "tool.sixhop", "tool")
    assert 8000 < int(told["remainingMs"]) <= 10_400
    assert int(told["waitMs"]) == 0
    assert told["cause"]
    assert told["pod"].startswith("tool-")


@requirement("errors:table", "errors:fault-attribution")
@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("reason", TABLE)
async def test_every_error_is_to_its_caller_what_the_table_says(
    reason: str, streaming: bool
) -> None:
    async with failing(raising(sample(reason)), events=1) as peer:
        error = await through(peer.dependency, streaming=streaming)

    assert error.origin is not None
    if reason in PASSED_ON:
        assert type(error) is TABLE[reason]
    elif reason in OVERLOADS:
        assert type(error) is DependencyOverloadedError
    else:
        assert type(error) is DependencyFailedError
    if reason.startswith("DEPENDENCY_"):
        assert error.origin == sample(reason).origin
    else:
        assert (error.origin.hop, error.origin.reason) == ("tool", reason)
        assert error.origin.code == TABLE[reason].code.name


@requirement("errors:bug-withheld")
@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize(
    "defect", [SelfBugError("hunter2"), KeyError("hunter2"), TimeoutError("hunter2")]
)
async def test_the_text_of_a_defect_is_withheld(defect: Exception, streaming: bool) -> None:
    async with failing(raising(defect)) as peer:
        error = await raw(peer, streaming=streaming)

    assert error.code() is grpc.StatusCode.INTERNAL
    assert b"hunter2" not in rich_status(error).SerializeToString()
    assert "hunter2" not in str(error)


@requirement("errors:table")
async def test_a_refusal_under_load_carries_when_to_come_back() -> None:
    async with failing(raising(LoadShedError("full", cause="queue", retry_after_s=1.5))) as peer:
        status = rich_status(await raw(peer, streaming=False))
        error = await through(peer.dependency, streaming=False)

    retry = error_details_pb2.RetryInfo()
    assert any(packed.Unpack(retry) for packed in status.details)
    assert retry.retry_delay.ToTimedelta().total_seconds() == 1.5
    assert error.retry_after_s == 1.5


@requirement("errors:table")
@pytest.mark.parametrize(
    ("pushback", "retry_after_s"),
    [((), None), (("250",), 0.25), (("0",), 0.0), (("-1000",), -1.0)],
    ids=["nothing", "a quarter of a second", "at once", "never"],
)
async def test_a_strangers_pushback_says_when_to_come_back(
    pushback: tuple[str, ...], retry_after_s: float | None
) -> None:
    trailers = [("grpc-retry-pushback-ms", value) for value in pushback]
    async with calling_stranger(*trailers) as dependency:
        error = await through(dependency, streaming=False)

    assert error.retry_after_s == retry_after_s


@requirement("errors:table")
async def test_a_pushback_that_is_no_number_means_never() -> None:
    async with calling_stranger(("grpc-retry-pushback-ms", "soon")) as dependency:
        error = await through(dependency, streaming=False)

    assert error.retry_after_s is not None
    assert error.retry_after_s < 0


@requirement("errors:table")
async def test_a_wrong_field_carries_bad_request() -> None:
    async with failing(raising(InvalidArgumentError("arguments.sql", "is empty"))) as peer:
        status = rich_status(await raw(peer, streaming=False))

    bad = error_details_pb2.BadRequest()
    assert any(packed.Unpack(bad) for packed in status.details)
    assert [v.field for v in bad.field_violations] == ["arguments.sql"]


@requirement("errors:table")
@pytest.mark.parametrize("text", ["x" * 5000, "字" * 5000, "line\nfeed\r\0\t" * 500, "%E4 100%"])
async def test_an_error_arrives_whatever_was_written_in_it(text: str) -> None:
    """Metadata of more than 8 KiB is refused: the caller would see another code."""
    report = AttemptReport(
        "routing",
        "ExecuteTool summarise",
        5,
        2,
        99.123456789,
        98.123456789,
        97.123456789,
        96.123456789,
        "RESOURCE_EXHAUSTED/DEPENDENCY_OVERLOADED",
    )

    async def fail() -> None:
        CURRENT.get().reports.extend([report] * MAX_REPORTS)
        raise NotFoundError(text, text, [text])

    async with failing(fail) as peer:
        error = await raw(peer, streaming=False)
        again = await through(peer.dependency, streaming=False)

    assert error.code() is grpc.StatusCode.NOT_FOUND
    assert len(infos(rich_status(error))) == 1
    assert isinstance(again, NotFoundError)


@requirement("reports:travel")
@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("ends_well", [False, True])
@pytest.mark.parametrize("wanted", [False, True])
async def test_the_reports_of_a_dependency_reach_its_caller_when_wanted_or_with_an_error(
    wanted: bool, ends_well: bool, streaming: bool
) -> None:
    report = AttemptReport("llm", "ChatCompletions", 1, 1, 0.5, 2.0, 1.5, 0.25, "OK")

    async def work() -> None:
        CURRENT.get().reports.append(report)
        if not ends_well:
            raise NotFoundError("tool", "x")

    async with failing(work, events=1) as peer:
        with own_work("domain", "Test", 10.0, CLOCK) as inbound:
            inbound.identity = Identity(wants_reports=wanted)
            try:
                await _call(peer.dependency, streaming=streaming)
            except NotFoundError:
                assert not ends_well

    *below, own = decode_reports(encode_reports(inbound.reports))
    if ends_well and not wanted:
        assert below == []
        return
    (told,) = below
    assert (told.hop, told.depth, told.given_s, told.outcome) == ("llm", 2, 2.0, "OK")
    assert (own.hop, own.depth) == ("tool", 1)
    assert own.outcome == ("OK" if ends_well else "NOT_FOUND/NOT_FOUND")
    assert told.start_s >= own.start_s + 0.5 - 0.001


async def _call(dependency: Dependency, *, streaming: bool) -> None:
    if not streaming:
        stub = ToolServiceStub(dependency.channel)
        await dependency.unary(stub.ExecuteTool, tool_pb2.ExecuteToolRequest())
        return
    generate = ModelServiceStub(dependency.channel).Generate
    async with dependency.stream(generate, model_pb2.GenerateRequest()) as events:
        async for _ in events:
            pass


@requirement("errors:table")
async def test_an_answer_that_is_no_message_is_the_callees_fault() -> None:
    async with calling_babbler() as dependency:
        stub = ToolServiceStub(dependency.channel)
        with own_work("domain", "Test", 5.0, CLOCK), pytest.raises(DependencyFailedError) as caught:
            await dependency.unary(stub.ListTools, tool_pb2.ListToolsRequest())

    assert caught.value.cause == "unreadable"
    assert caught.value.origin is not None
    assert caught.value.origin.reason == "UNREADABLE"


@requirement("errors:table")
async def test_a_streamed_message_that_is_none_is_the_callees_fault_and_no_end() -> None:
    events: list[model_pb2.GenerateResponse] = []
    async with calling_babbler() as dependency:
        stub = ModelServiceStub(dependency.channel)
        with own_work("domain", "Test", 5.0, CLOCK), pytest.raises(DependencyFailedError) as caught:
            async with dependency.stream(stub.Generate, model_pb2.GenerateRequest()) as answers:
                events.extend([event async for event in answers])

    assert (events, caught.value.cause) == ([], "unreadable")
