"""Shows the trap of grpcio-testing, and that the adapter of these tests is out of it."""

from typing import Any

import grpc
import grpc_testing
import pytest

from sixhop.tool.v1 import tool_pb2
from tests.requirements import requirement
from tests.unit.runtime.fake_rpc import UNARY, NotAwaitedError, SyncServicer, call_unary
from tests.unit.runtime.fake_time import START

ANSWER = tool_pb2.ExecuteToolResponse()


@requirement("testing:no-unawaited-answer")
def test_grpcio_testing_by_itself_takes_a_coroutine_for_an_answer() -> None:
    """This is the trap; when it is gone, so may be the adapter."""

    async def handler(request: Any, context: Any) -> Any:
        raise AssertionError("nobody has awaited this")

    line = grpc_testing.strict_fake_time(START)

    class Naive:
        def ExecuteTool(self, request: Any, context: Any) -> Any:
            return handler(request, context)

    server = grpc_testing.server_from_dictionary({UNARY.containing_service: Naive()}, line)
    running = server.invoke_unary_unary(UNARY, (), tool_pb2.ExecuteToolRequest(), 1.0)
    answer, _, code, _ = running.termination()
    answer.close()

    assert code is grpc.StatusCode.OK


@requirement("testing:no-unawaited-answer")
def test_an_unawaited_coroutine_never_counts_as_an_answer() -> None:
    async def forgotten() -> Any:
        return ANSWER

    async def handler(request: Any, context: Any) -> Any:
        return forgotten()

    answered = call_unary(handler, timeout_s=1.0)

    assert answered.code is grpc.StatusCode.UNKNOWN
    assert "is no message; was it awaited?" in answered.text
    assert answered.messages == []


@requirement("testing:no-unawaited-answer")
def test_a_handler_that_is_not_asynchronous_never_counts_as_one() -> None:
    servicer = SyncServicer(grpc_testing.strict_fake_time(START), lambda *_: ANSWER, None)

    with pytest.raises(NotAwaitedError):
        servicer.unary(None, None)
