"""Asks a gateway: sends a question, turns messages into plain events and errors."""

import asyncio
from collections.abc import AsyncGenerator
from types import TracebackType
from typing import Any, cast

import grpc

from gateway.cli import events
from gateway.cli.console import clean
from gateway.cli.failure import (
    GATEWAY_GONE,
    NO_ANSWER,
    NOT_RUNNING,
    TRUNCATED,
    Failure,
    RunFailedError,
)
from services.runtime.call import AttemptReport
from services.runtime.client import open_channel
from services.runtime.durations import to_seconds
from services.runtime.identity import CREDENTIAL_KEY, REPORTS_WANTED_KEY
from services.runtime.reports import REPORTS_KEY, decode_reports
from services.runtime.status import DETAILS_KEY, error_info, retry_after_s
from services.runtime.topology import GATEWAY
from sixhop.gateway.v1 import gateway_pb2
from sixhop.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from sixhop.type.v1 import artifact_pb2, run_pb2

CLIENT_GRACE_S = 0.5
"""How long after the deadline gRPC may still tell that it has passed."""

_STATES = {
    run_pb2.STEP_STATE_OK: events.StepState.OK,
    run_pb2.STEP_STATE_FAILED: events.StepState.FAILED,
    run_pb2.STEP_STATE_SKIPPED: events.StepState.SKIPPED,
}
Metadata = Any


class GatewayClient:
    """Talks with one gateway."""

    def __init__(self, address: str, api_key: str = "") -> None:
        """Take `host:port`, and what to be known by; it connects with the first question."""
        self.address = address
        self._metadata: tuple[tuple[str, str], ...] = ((REPORTS_WANTED_KEY, "1"),)
        if api_key:
            self._metadata += ((CREDENTIAL_KEY, f"Bearer {api_key}"),)
        self.reports: list[AttemptReport] = []
        """What every hop told of the last run, also when it failed."""
        self._channel = open_channel(address)
        self._stub = GatewayServiceStub(self._channel)

    async def __aenter__(self) -> "GatewayClient":
        """Return the client."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the connection."""
        await self._channel.close()

    async def run(
        self, question: events.Question, deadline_s: float
    ) -> AsyncGenerator[events.Event, None]:
        """Yield what the run tells; closing the generator cancels the run everywhere.

        Args:
            question: what to ask.
            deadline_s: how long the run may take.

        Raises:
            RunFailedError: the run ended without an answer.
        """
        self.reports = []
        until = asyncio.get_running_loop().time() + deadline_s + CLIENT_GRACE_S
        call = self._stub.Run(_request(question), timeout=deadline_s, metadata=self._metadata)
        heard = finished = False
        try:
            while True:
                # Each read by itself: a timeout around a yield would hit whoever reads us.
                async with asyncio.timeout_at(until):
                    response = await call.read()
                if response is grpc.aio.EOF:
                    break
                heard = True
                event = to_event(cast(gateway_pb2.RunResponse, response).event)
                finished = finished or isinstance(event, events.Finished)
                if event is not None:
                    yield event
            async with asyncio.timeout_at(until):
                self._keep_reports(await call.trailing_metadata())
        except grpc.aio.AioRpcError as error:
            self._keep_reports(error.trailing_metadata())
            raise RunFailedError(to_failure(error, self.address, heard=heard)) from None
        except TimeoutError:
            raise RunFailedError(_silent(deadline_s)) from None
        finally:
            call.cancel()
        if not finished:
            raise RunFailedError(
                Failure(
                    code="OK",
                    reason=TRUNCATED,
                    message="the run ended without its last event",
                    hop=GATEWAY,
                    cause="truncated",
                )
            )

    def _keep_reports(self, metadata: Metadata) -> None:
        value = metadata.get(REPORTS_KEY) if metadata is not None else None
        if isinstance(value, bytes):
            self.reports = decode_reports(value)


_DELIVERIES = {
    "restartable": run_pb2.DELIVERY_RESTARTABLE,
    "buffered": run_pb2.DELIVERY_BUFFERED,
    "live": run_pb2.DELIVERY_LIVE,
}


def to_failure(error: grpc.aio.AioRpcError, address: str, *, heard: bool) -> Failure:
    """Return what an error on the wire tells.

    Args:
        error: what gRPC raised.
        address: the gateway's, for messages.
        heard: whether the run had told anything before.
    """
    metadata = error.trailing_metadata()
    details = metadata.get(DETAILS_KEY) if metadata is not None else None
    details = details if isinstance(details, bytes) else None
    info = error_info(details)
    if info is None:
        return _bare_failure(error, address, heard=heard)
    facts = info.metadata
    return Failure(
        code=error.code().name,
        reason=info.reason,
        message=clean(error.details() or ""),
        hop=facts.get("hop", ""),
        pod=facts.get("pod", ""),
        cause=facts.get("cause", ""),
        origin_hop=facts.get("originHop", ""),
        origin_pod=facts.get("originPod", ""),
        origin_code=facts.get("originCode", ""),
        origin_reason=facts.get("originReason", ""),
        remaining_ms=_number(facts.get("remainingMs")),
        wait_ms=_number(facts.get("waitMs")),
        retry_after_s=retry_after_s(details),
        field=facts.get("field", ""),
    )


def _bare_failure(error: grpc.aio.AioRpcError, address: str, *, heard: bool) -> Failure:
    """Return what a code tells that gRPC made up by itself."""
    code, text = error.code(), clean(error.details() or "")
    reason, message, cause = code.name, f"{code.name}: {text}", ""
    if code is grpc.StatusCode.UNAVAILABLE and not heard:
        reason, cause = NOT_RUNNING, "unreachable"
        message = f"no suite answers at {address}"
    elif code is grpc.StatusCode.UNAVAILABLE:
        reason, cause = GATEWAY_GONE, "connection_lost"
        message = f"the gateway at {address} went away in the middle of the run"
    elif code is grpc.StatusCode.DEADLINE_EXCEEDED:
        reason, cause = NO_ANSWER, "deadline"
        message = f"the gateway at {address} did not answer before the deadline"
    elif code is grpc.StatusCode.UNIMPLEMENTED:
        message = f"{address} is no gateway of sixhop ({text})"
        reason, cause = NOT_RUNNING, "other_service"
    return Failure(code=code.name, reason=reason, message=message, hop=GATEWAY, cause=cause)


def _silent(deadline_s: float) -> Failure:
    return Failure(
        code=grpc.StatusCode.DEADLINE_EXCEEDED.name,
        reason=NO_ANSWER,
        message=f"nothing was heard of the run when its {deadline_s:g} s were over",
        hop=GATEWAY,
        cause="deadline",
        remaining_ms=0,
    )


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None


def _request(question: events.Question) -> gateway_pb2.RunRequest:
    sources = [
        artifact_pb2.DataSource(name=file.name, content=file.content) for file in question.data
    ]
    return gateway_pb2.RunRequest(
        question=run_pb2.Question(text=question.text, language=question.language, sources=sources),
        agent=question.agent,
        delivery=_DELIVERIES.get(question.delivery, run_pb2.DELIVERY_UNSPECIFIED),
    )


def to_event(event: run_pb2.RunEvent) -> events.Event | None:
    """Return an event in plain types, or None for a kind that is newer than this client."""
    kind = event.WhichOneof("event")
    if kind == "accepted":
        accepted = event.accepted
        return events.Accepted(accepted.run_id, to_seconds(accepted.budget_duration))
    if kind == "routed":
        routed = event.routed
        return events.Routed(routed.agent, routed.score, routed.margin, routed.reason)
    if kind == "step_started":
        started = event.step_started
        return events.StepStarted(started.step, started.name, started.title)
    if kind == "step_finished":
        return _to_step_finished(event.step_finished)
    if kind == "thinking":
        thinking = event.thinking
        return events.Thinking(
            thinking.state,
            to_seconds(thinking.silence_duration),
            to_seconds(thinking.remaining_duration),
            thinking.hop,
        )
    if kind == "text_delta":
        return events.TextDelta(event.text_delta.text)
    if kind == "degraded":
        degraded = event.degraded
        return events.Degraded(
            degraded.mechanism,
            degraded.part,
            degraded.reason,
            to_seconds(degraded.age_duration),
            degraded.error_reason,
        )
    if kind == "restarted":
        return events.Restarted(event.restarted.reason)
    if kind == "finished":
        return _to_finished(event.finished)
    return None


def _to_step_finished(step: run_pb2.StepFinished) -> events.StepFinished:
    return events.StepFinished(
        step.step,
        step.name,
        _STATES.get(step.state, events.StepState.FAILED),
        to_seconds(step.elapsed_duration),
        step.detail,
    )


def _to_finished(finished: run_pb2.RunFinished) -> events.Finished:
    usage = finished.usage
    return events.Finished(
        agent=finished.agent,
        model=finished.model,
        usage=events.Usage(usage.input_token_count, usage.output_token_count, usage.estimated),
        artefacts=tuple(
            events.Artefact(artefact.name, artefact.media_type, artefact.content)
            for artefact in finished.artifacts
        ),
        degraded=finished.degraded,
        missing_parts=tuple(finished.missing_parts),
        sources=tuple(finished.sources),
    )
