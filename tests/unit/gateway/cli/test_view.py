"""Tests what people and programs are shown of a run's end."""

import io
import json

from rich.console import Console

from gateway.cli import events
from gateway.cli.artefacts import SavedFile
from gateway.cli.failure import Failure
from gateway.cli.transcript import Transcript
from gateway.cli.view import Result, show_answer, show_failure, to_document
from gateway.cli.waterfall import own_report, tree
from services.runtime.call import AttemptReport

REPORTS = [AttemptReport("routing", "Route", 1, 1, 0.1, 28.8, 2.0, 27.9, "OK")]
FINISHED = events.Finished(
    agent="reports",
    model="template",
    usage=events.Usage(5, 0, False),
    artefacts=(events.Artefact("a.pdf", "application/pdf", b"123"),),
    degraded=True,
    missing_parts=("chart",),
    sources=("orders", "SELECT " + "x" * 500),
)
FAILURE = Failure(
    code="ABORTED",
    reason="DEPENDENCY_FAILED",
    message="model did not answer",
    hop="gateway",
    pod="gateway-1",
    cause="step_timeout",
    origin_hop="model",
    origin_code="DEADLINE_EXCEEDED",
    origin_reason="NO_ANSWER",
    remaining_ms=1234,
)


def ended(*told: events.Event, failure: Failure | None = None) -> Result:
    transcript = Transcript()
    for event in told:
        transcript.apply(event)
    outcome = "OK" if failure is None else f"{failure.code}/{failure.reason}"
    return Result(
        transcript=transcript,
        deadline_s=30.0,
        elapsed_s=2.5,
        failure=failure,
        root=tree(own_report(30.0, 2.5, outcome), REPORTS),
        files=[SavedFile("a.pdf", "application/pdf", 3, "out/a.pdf")],
    )


def shown(show: object, result: Result) -> str:
    console = Console(file=io.StringIO(), width=120, color_system=None, markup=False)
    show(console, result)  # type: ignore[operator]
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def test_an_answer_comes_first_and_then_who_wrote_it_and_what_belongs_to_it() -> None:
    result = ended(
        events.Accepted("run-1", 30.0),
        events.TextDelta("[bold]Kitchen[/bold] grew most."),
        events.Degraded("template", "prose", "the model was slow"),
        FINISHED,
    )

    text = shown(show_answer, result)

    assert text.startswith("[bold]Kitchen[/bold] grew most.\n")
    assert "Written by a template, no model" in text
    assert "Degraded: prose by a template, because the model was slow" in text
    assert "Missing:\n  chart" in text
    assert "out/a.pdf (3 bytes)" in text
    assert "routing Route" in text
    assert "run-1" in text


def test_the_footer_of_an_answer_tells_that_the_gateway_cut_the_deadline() -> None:
    result = ended(events.Accepted("run-1", 30.0), events.TextDelta("x"), FINISHED)
    uncut = shown(show_answer, result)

    result.transcript.asked_s = 600.0

    assert "2.50 s of 30.00 s." in uncut
    assert "2.50 s of 30.00 s, cut by the gateway from 600 s." in shown(show_answer, result)
    assert to_document(result)["asked_deadline_s"] == 600.0
    result.failure = FAILURE
    assert "deadline    30.00 s, cut by the gateway from 600 s" in shown(show_failure, result)


def test_a_long_query_among_the_sources_is_cut_for_people_and_whole_for_programs() -> None:
    result = ended(events.TextDelta("x"), FINISHED)

    assert "x" * 400 not in shown(show_answer, result)
    assert to_document(result)["sources"] == list(FINISHED.sources)


def test_a_failure_names_hop_origin_cause_time_left_and_what_to_do() -> None:
    text = shown(show_failure, ended(events.TextDelta("Kitc"), failure=FAILURE))

    assert "model did not answer" in text
    assert "hop         model" in text
    assert "ABORTED DEPENDENCY_FAILED" in text
    assert "DEADLINE_EXCEEDED NO_ANSWER" in text
    assert "step_timeout" in text
    assert "1234 ms" in text
    assert "ask again; a limit of that part itself" in text
    assert "not complete and not an answer:\nKitc\n" in text
    assert "routing Route" in text


def test_the_document_of_an_answer_has_the_names_that_programs_rely_on() -> None:
    document = json.loads(
        json.dumps(
            to_document(ended(events.Accepted("run-1", 30.0), events.TextDelta("x"), FINISHED))
        )
    )

    assert document["ok"] is True
    assert document["run_id"] == "run-1"
    assert document["text"] == "x"
    assert document["model"] == "template"
    assert document["artefacts"] == [
        {"name": "a.pdf", "media_type": "application/pdf", "byte_count": 3, "path": "out/a.pdf"}
    ]
    assert document["usage"] == {
        "input_token_count": 5,
        "output_token_count": 0,
        "estimated": False,
    }
    assert [hop["hop"] for hop in document["hops"]] == ["gateway", "routing"]
    assert document["hops"][1] == {
        "hop": "routing",
        "method": "Route",
        "depth": 1,
        "attempt": 1,
        "start_s": 0.1,
        "given_s": 28.8,
        "used_s": 2.0,
        "left_s": 27.9,
        "outcome": "OK",
        "own_s": 2.0,
    }
    assert "error" not in document


def test_the_document_of_a_failure_never_passes_a_part_for_the_answer() -> None:
    document = to_document(ended(events.TextDelta("Kitc"), failure=FAILURE))

    assert document["ok"] is False
    assert "text" not in document
    assert document["partial_text"] == "Kitc"
    assert document["error"]["reason"] == "DEPENDENCY_FAILED"
    assert document["error"]["hop_to_blame"] == "model"
    assert document["error"]["remaining_ms"] == 1234
