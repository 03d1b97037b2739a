"""Tests how messages and errors of the wire become plain ones."""

import grpc
import pytest
from grpc.aio import AioRpcError, Metadata

from gateway.cli import events
from gateway.cli.client import to_event, to_failure
from gateway.cli.failure import GATEWAY_GONE, NO_ANSWER, NOT_RUNNING
from services.runtime.durations import to_duration
from services.runtime.errors import (
    DependencyFailedError,
    InvalidArgumentError,
    LoadShedError,
    Origin,
    SixhopError,
)
from services.runtime.status import DETAILS_KEY, to_status
from sixhop.type.v1 import artifact_pb2, chat_pb2, run_pb2, usage_pb2

ADDRESS = "127.0.0.1:7400"


def wire_error(error: SixhopError) -> AioRpcError:
    status = to_status(error, hop="gateway", pod="gateway-1", remaining_s=1.5, wait_s=0.25)
    code = next(code for code in grpc.StatusCode if code.value[0] == status.code)
    details = Metadata((DETAILS_KEY, status.SerializeToString()))
    return AioRpcError(code, Metadata(), details, status.message)


def bare_error(code: grpc.StatusCode) -> AioRpcError:
    return AioRpcError(code, Metadata(), Metadata(), "text of gRPC")


def test_a_typed_error_tells_all_that_the_wire_carries() -> None:
    origin = Origin("model", "model-7", "DEADLINE_EXCEEDED", "SELF_TIMEOUT")
    error = DependencyFailedError("routing", "model was slow", cause="step_timeout", origin=origin)

    failure = to_failure(wire_error(error), ADDRESS, heard=True)

    assert (failure.code, failure.reason) == ("ABORTED", "DEPENDENCY_FAILED")
    assert failure.message == "model was slow"
    assert (failure.hop, failure.pod, failure.cause) == ("gateway", "gateway-1", "step_timeout")
    assert (failure.origin_hop, failure.origin_pod) == ("model", "model-7")
    assert (failure.origin_code, failure.origin_reason) == ("DEADLINE_EXCEEDED", "SELF_TIMEOUT")
    assert (failure.remaining_ms, failure.wait_ms) == (1500, 250)
    assert failure.retry_after_s is None


def test_a_field_and_a_pause_are_told_too() -> None:
    wrong = to_failure(wire_error(InvalidArgumentError("question.text", "no")), ADDRESS, heard=True)
    shed = to_failure(wire_error(LoadShedError("no", retry_after_s=0.75)), ADDRESS, heard=False)

    assert wrong.field == "question.text"
    assert shed.retry_after_s == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("code", "heard", "reason"),
    [
        (grpc.StatusCode.UNAVAILABLE, False, NOT_RUNNING),
        (grpc.StatusCode.UNAVAILABLE, True, GATEWAY_GONE),
        (grpc.StatusCode.DEADLINE_EXCEEDED, True, NO_ANSWER),
        (grpc.StatusCode.UNIMPLEMENTED, False, NOT_RUNNING),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, False, "RESOURCE_EXHAUSTED"),
    ],
)
def test_a_code_that_grpc_made_up_is_told_apart_from_a_hops(
    code: grpc.StatusCode, heard: bool, reason: str
) -> None:
    failure = to_failure(bare_error(code), ADDRESS, heard=heard)

    assert failure.reason == reason
    assert failure.hop == "gateway"


def test_each_kind_of_event_becomes_its_plain_twin() -> None:
    half = to_duration(0.5)
    pairs = [
        (
            run_pb2.RunEvent(accepted=run_pb2.RunAccepted(run_id="r", budget_duration=half)),
            events.Accepted("r", 0.5),
        ),
        (
            run_pb2.RunEvent(routed=run_pb2.RunRouted(agent="a", score=1, margin=0.5, reason="n")),
            events.Routed("a", 1.0, 0.5, "n"),
        ),
        (
            run_pb2.RunEvent(step_started=run_pb2.StepStarted(step=1, name="sql", title="t")),
            events.StepStarted(1, "sql", "t"),
        ),
        (
            run_pb2.RunEvent(
                step_finished=run_pb2.StepFinished(
                    step=1, name="sql", state=run_pb2.STEP_STATE_SKIPPED, elapsed_duration=half
                )
            ),
            events.StepFinished(1, "sql", events.StepState.SKIPPED, 0.5, ""),
        ),
        (
            run_pb2.RunEvent(
                thinking=run_pb2.Thinking(
                    state="silent", silence_duration=half, remaining_duration=half, hop="h"
                )
            ),
            events.Thinking("silent", 0.5, 0.5, "h"),
        ),
        (run_pb2.RunEvent(text_delta=run_pb2.TextDelta(text="x")), events.TextDelta("x")),
        (
            run_pb2.RunEvent(degraded=run_pb2.Degraded(mechanism="m", part="p", reason="r")),
            events.Degraded("m", "p", "r"),
        ),
        (
            run_pb2.RunEvent(
                degraded=run_pb2.Degraded(
                    mechanism="cache",
                    part="p",
                    reason="r",
                    age_duration=half,
                    error_reason="CIRCUIT_OPEN",
                )
            ),
            events.Degraded("cache", "p", "r", 0.5, "CIRCUIT_OPEN"),
        ),
        (run_pb2.RunEvent(restarted=run_pb2.Restarted(reason="r")), events.Restarted("r")),
    ]

    assert [to_event(wire) for wire, _ in pairs] == [plain for _, plain in pairs]


def test_the_last_event_brings_everything_along() -> None:
    finished = run_pb2.RunFinished(
        agent="a",
        model="m",
        usage=usage_pb2.Usage(input_token_count=3, output_token_count=2, estimated=True),
        artifacts=[artifact_pb2.Artifact(name="n.pdf", media_type="t", content=b"c")],
        degraded=True,
        missing_parts=["chart"],
        sources=["orders"],
    )

    event = to_event(run_pb2.RunEvent(finished=finished))

    assert event == events.Finished(
        agent="a",
        model="m",
        usage=events.Usage(3, 2, True),
        artefacts=(events.Artefact("n.pdf", "t", b"c"),),
        degraded=True,
        missing_parts=("chart",),
        sources=("orders",),
    )


def test_an_event_that_is_newer_than_this_client_is_passed_over() -> None:
    assert to_event(run_pb2.RunEvent()) is None


def test_a_tool_call_is_passed_over_because_the_command_line_offers_no_tools() -> None:
    call = chat_pb2.ToolCall(id="a", name="look_up")

    assert to_event(run_pb2.RunEvent(tool_call=call)) is None
