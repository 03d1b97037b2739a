"""Shows how a run ended: to people as text, to programs as one document."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Console
from rich.text import Text

from gateway.cli.artefacts import SavedFile
from gateway.cli.console import clean, length_text, one_line, size_text
from gateway.cli.degraded import degraded_text, part_text
from gateway.cli.failure import Failure
from gateway.cli.transcript import Transcript
from gateway.cli.waterfall import LEGEND, Row, render
from services.runtime.call import AttemptReport

TEMPLATE = "template"
"""Stands for the model's name where no model wrote the text."""

MAX_SOURCE_CHARS = 160


@dataclass(slots=True, kw_only=True)
class Result:
    """Is a run that has ended."""

    transcript: Transcript
    deadline_s: float
    """What the run had: what was asked for, or what the gateway cut it to."""
    elapsed_s: float
    failure: Failure | None
    root: Row
    """The client's own call, with all that happened below it."""
    files: list[SavedFile] = field(default_factory=list)


def show_answer(console: Console, result: Result) -> None:
    """Show an answer with all that belongs to it."""
    transcript = result.transcript
    finished = transcript.finished
    if finished is None:
        raise ValueError("a run without its last event has no answer to show")
    _say(console, transcript.text.strip() or "(the answer has no text)")
    _say(console, "")
    writer = "a template, no model" if finished.model == TEMPLATE else one_line(finished.model)
    tokens = finished.usage.output_token_count
    wrote = f", {tokens} tokens" if tokens else ""
    _say(
        console,
        f"Written by {writer}{wrote}; agent {one_line(finished.agent)}; "
        f"{length_text(result.elapsed_s)} of {length_text(result.deadline_s)}"
        f"{transcript.cut_note}.",
        style="dim",
    )
    for degraded in transcript.degradations:
        text = degraded_text(degraded, transcript.language)
        _say(console, text[0].upper() + text[1:], style="yellow")
    missing = [part_text(one_line(part), transcript.language) for part in finished.missing_parts]
    _list(console, "Missing" if transcript.language == "en" else "缺少", missing, "yellow")
    _list(console, "Sources", [_short(one_line(source)) for source in finished.sources])
    _list(
        console, "Files", [f"{file.path} ({size_text(file.byte_count)})" for file in result.files]
    )
    show_waterfall(console, result)


def show_failure(console: Console, result: Result) -> None:
    """Show a typed error, and where the time went."""
    failure = result.failure
    if failure is None:
        raise ValueError("this run has not failed")
    _say(console, f"sixhop: {failure.message}", style="bold red")
    facts = {
        "hop": failure.failed_hop,
        "code": failure.code + (f" {failure.reason}" if failure.reason != failure.code else ""),
        "origin": " ".join(
            part
            for part in (failure.origin_pod, failure.origin_code, failure.origin_reason)
            if part
        ),
        "cause": failure.cause,
        "answered by": failure.pod if failure.origin_hop else "",
        "deadline": f"{length_text(result.deadline_s)}{result.transcript.cut_note}"
        if result.transcript.asked_s
        else "",
        "time left": "" if failure.remaining_ms is None else f"{failure.remaining_ms} ms",
        "run": result.transcript.run_id,
        "what to do": failure.advice,
    }
    for name, fact in facts.items():
        if fact:
            _say(console, f"  {name:<12}{one_line(fact)}")
    if result.transcript.text:
        _say(console, "  Until then it had said, which is not complete and not an answer:")
        _say(console, clean(result.transcript.text), style="dim")
    if result.root.children:
        show_waterfall(console, result)


def show_waterfall(console: Console, result: Result) -> None:
    """Show what each hop was given, what it used and what was left."""
    _say(console, "")
    console.print(render(result.root, console.width))
    _say(console, f"{LEGEND}  run {result.transcript.run_id or '(none)'}", style="dim")


def to_document(result: Result) -> dict[str, Any]:
    """Return the end of a run as the document that `--json` writes; its names are stable."""
    transcript, failure, finished = result.transcript, result.failure, result.transcript.finished
    document: dict[str, Any] = {
        "ok": failure is None,
        "run_id": transcript.run_id,
        "deadline_s": result.deadline_s,
        "asked_deadline_s": transcript.asked_s or result.deadline_s,
        "elapsed_s": round(result.elapsed_s, 4),
        "routing": None if transcript.routed is None else asdict(transcript.routed),
        "steps": [
            {**asdict(step), "state": step.state.value, "elapsed_s": round(step.elapsed_s, 4)}
            for step in transcript.steps
        ],
        "degradations": [asdict(degraded) for degraded in transcript.degradations],
        "hops": [_hop(row.report, row.own_s) for row in result.root.flat()],
    }
    if failure is not None:
        advice = {"hop_to_blame": failure.failed_hop, "advice": failure.advice}
        document["error"] = asdict(failure) | advice
        document["partial_text"] = transcript.text
    elif finished is not None:
        document |= {
            "text": transcript.text,
            "agent": finished.agent,
            "model": finished.model,
            "usage": asdict(finished.usage),
            "degraded": finished.degraded,
            "missing_parts": [clean(part) for part in finished.missing_parts],
            "sources": [clean(source) for source in finished.sources],
            "artefacts": [asdict(file) for file in result.files],
        }
    return document


def _hop(report: AttemptReport, own_s: float) -> dict[str, Any]:
    return {
        "hop": report.hop,
        "method": report.method,
        "depth": report.depth,
        "attempt": report.attempt,
        "start_s": round(report.start_s, 4),
        "given_s": round(report.given_s, 4),
        "used_s": round(report.used_s, 4),
        "own_s": round(own_s, 4),
        "left_s": round(report.left_s, 4),
        "outcome": report.outcome,
    }


def _short(text: str) -> str:
    """Return a source as a person reads it; the query behind a report fills a screen."""
    if len(text) <= MAX_SOURCE_CHARS:
        return text
    return f"{text[:MAX_SOURCE_CHARS].rstrip()} … (--json shows all of it)"


def _list(console: Console, title: str, entries: Sequence[str], style: str = "") -> None:
    if not entries:
        return
    _say(console, f"{title}:", style=style)
    for entry in entries:
        _say(console, f"  {entry}", style=style)


def _say(console: Console, text: str, style: str = "") -> None:
    # Lines are as long as they are: whoever pipes them wraps them.
    console.print(Text(text, style=style), soft_wrap=True)
