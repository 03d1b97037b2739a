"""Writes runs, their events and their files for HTTP clients."""

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any, cast
from urllib.parse import quote

import orjson

from gateway.http.run_addresses import artifact_address, run_address
from gateway.http.run_told import (
    AnswerTold,
    FileTold,
    LesserTold,
    RunErrorTold,
    RunPage,
    RunStarted,
    RunSummary,
    RunWhole,
    ToolCallTold,
    UsageTold,
)
from gateway.runs.log import Told
from gateway.runs.reading import Found, RunReader
from gateway.runs.record import ANSWERED, RunRecord, Status
from gateway.runs.run import LagError, Run
from services.runtime.call import Inbound

GAP = "gap"
"""The event that says which events are gone: the reader came, or was, too late for them."""
ENDED = "ended"
"""The last event of a run that has ended, however; it says how."""
ELSEWHERE = "elsewhere"
"""The first event of a run that another gateway runs: all of its events come at its end."""
GONE = "gone"
"""The last event of a run that is not kept any more."""
_MEDIA_TYPE = re.compile(r"[a-z0-9.+-]{1,60}/[a-z0-9.+-]{1,60}")
_SHOWN = frozenset({"application/pdf", "image/png", "image/jpeg"})
"""What a browser may show by itself: it runs nothing."""


def started(inbound: Inbound) -> RunStarted:
    """Return what is told of a run that has begun."""
    address = run_address(inbound.identity.run_id)
    return {
        "object": "run",
        "id": inbound.identity.run_id,
        "request_id": inbound.identity.request_id,
        "status": "running",
        "links": {"self": address, "events": f"{address}/events"},
    }


def summary(run: Run) -> RunSummary:
    """Return what a list shows of a run."""
    record = run.told_record()
    return {
        "object": "run",
        "id": record.run_id,
        "request_id": record.request_id,
        "tenant": record.tenant,
        "gateway": record.gateway,
        "method": record.method,
        "status": record.status if not run.live else Status.RUNNING,
        "agent": record.agent,
        "model": record.model,
        "question": {
            "text": record.question,
            "char_count": record.question_char_count,
            "source_count": record.source_count,
        },
        "started_at": _instant(record.started_ms),
        "budget_ms": record.budget_ms,
        "elapsed_ms": record.elapsed_ms,
        "usage": cast(UsageTold | None, record.usage),
        "degraded": [cast(LesserTold, each) for each in record.degradations],
        "missing_parts": record.missing_parts,
        "artifacts": [_file(record, each) for each in record.artifacts],
        "error": cast(RunErrorTold | None, record.error),
        "event_count": record.event_count,
    }


def whole(run: Run) -> RunWhole:
    """Return all that is kept of a run, but for its events."""
    address = run_address(run.record.run_id)
    return {
        **summary(run),
        "hops": run.record.hops,
        "answer": _answer(run),
        "links": {
            "self": address,
            "events": f"{address}/events",
        },
    }


def page(found: Found, limit: int) -> RunPage:
    """Return a list of runs; `next` is there when more follow."""
    shown = found.runs[:limit]
    more = shown[-1].record if len(found.runs) > limit else None
    return {
        "object": "list",
        "data": [summary(run) for run in shown],
        "next": f"{more.started_ms}-{more.run_id}" if more is not None else None,
        "partial": found.partial,
    }


async def event_chunks(run: Run, after: int, reader: RunReader) -> AsyncGenerator[bytes, None]:
    """Yield the events of a run after a number, as bytes of the wire, until it has ended.

    Those of a run of another gateway come together, once it has ended, and that is told first.
    """
    if run.elsewhere and run.live:
        yield _sse(ELSEWHERE, None, {"gateway": run.record.gateway})
        ended = await reader.ended(run)
        if ended is None:
            yield _gone()
            return
        run = ended
    first = run.log.first
    if after < first - 1:
        yield _gap(after + 1, first - 1, "evicted")
    try:
        async with aclosing(run.follow(after)) as lists:
            async for events in lists:
                after = events[-1].sequence
                yield b"".join(map(_event, events))
    except LagError:
        yield _gap(after + 1, run.log.first - 1, "slow_reader")
        return
    if run.gone:
        yield _gone()
    else:
        yield _sse(ENDED, run.log.sequence + 1, whole(run))


def file_headers(name: str, media_type: str) -> dict[str, str]:
    """Return the headers of a file: nobody is to take it for something else, or to run it."""
    kind = media_type if _MEDIA_TYPE.fullmatch(media_type) else "application/octet-stream"
    shown = kind in _SHOWN
    headers = {
        "content-type": f"{kind}; charset=utf-8" if kind.startswith("text/") else kind,
        "content-disposition": f"{'inline' if shown else 'attachment'}; "
        f"filename*=UTF-8''{quote(name, safe='')}",
        "x-content-type-options": "nosniff",
        "cache-control": "private, no-store",
    }
    if not shown:
        headers["content-security-policy"] = "sandbox; default-src 'none'"
    return headers


def _answer(run: Run) -> AnswerTold | None:
    """Return what a run has answered: nothing before its end, without one, or when words are gone.

    What a run had said that failed is no answer.
    """
    words = run.words()
    if run.live or words is None or run.record.status not in ANSWERED:
        return None
    return {
        "text": words.text,
        "tool_calls": [cast(ToolCallTold, each) for each in words.tool_calls],
        "sources": list(words.sources),
        "finish_reason": run.record.finish_reason,
    }


def _event(told: Told) -> bytes:
    data = {"sequence": told.sequence, "at_ms": told.at_ms, "kind": told.kind, **told.data}
    return _sse(told.kind, told.sequence, data)


def _gone() -> bytes:
    return _sse(GONE, None, {"reason": "the run is not kept any more"})


def _gap(first: int, last: int, reason: str) -> bytes:
    return _sse(GAP, None, {"first_missing": first, "last_missing": last, "reason": reason})


def _sse(kind: str, number: int | None, data: Mapping[str, Any]) -> bytes:
    name = b"" if number is None else b"id: %d\n" % number
    return b"%sevent: %s\ndata: %s\n\n" % (name, kind.encode(), orjson.dumps(data))


def _file(record: RunRecord, file: Mapping[str, Any]) -> FileTold:
    url = artifact_address(record.run_id, file["name"]) if file["kept"] else None
    return {
        "name": file["name"],
        "media_type": file["media_type"],
        "byte_count": file["byte_count"],
        "kept": file["kept"],
        "url": url,
    }


def _instant(epoch_ms: int) -> str:
    return datetime.fromtimestamp(epoch_ms / 1000, UTC).isoformat(timespec="milliseconds")
