"""Holds the front door to refusing what no agent could answer, with the field and a fix."""

import pytest

from gateway.config import GatewaySettings
from gateway.question import check_question
from services.runtime.errors import InvalidArgumentError
from sixhop.type.v1.artifact_pb2 import DataSource
from sixhop.type.v1.run_pb2 import Question
from tests.requirements import requirement

SETTINGS = GatewaySettings(max_question_chars=20, max_source_bytes=10, max_source_count=2)


@pytest.mark.parametrize(
    "question",
    [
        Question(text="hello"),
        Question(text="x" * 20),
        Question(text="哪个品类增长最快?", language="zh"),
        Question(text="hello", language="en", session_id="s" * 200),
        Question(text="hello", sources=[DataSource(name="a.csv", content=b"x" * 10)]),
        Question(text="hello", sources=[DataSource(name="a.csv"), DataSource(name="b" * 200)]),
    ],
)
def test_a_question_that_can_be_answered_passes(question: Question) -> None:
    check_question(question, SETTINGS)


@requirement("gateway:bad-input")
@pytest.mark.parametrize(
    ("question", "field", "fix"),
    [
        (Question(), "question.text", "ask something"),
        (Question(text=" \n\t "), "question.text", "ask something"),
        (Question(text="x" * 21), "question.text", "put long text into a file"),
        (Question(text=" " * 30 + "x"), "question.text", "has 31 characters, the limit is 20"),
        (Question(text="a\0b"), "question.text", "remove it"),
        (Question(text="hello", language="fr"), "question.language", "one of en, zh"),
        (Question(text="hello", language="EN"), "question.language", "one of en, zh"),
        (Question(text="hello", session_id="s" * 201), "question.session_id", "longer than 200"),
        (
            Question(text="hello", sources=[DataSource(name="a")] * 3),
            "question.sources",
            "has 3 files, the limit is 2",
        ),
        (
            Question(text="hello", sources=[DataSource(content=b"x")]),
            "question.sources.name",
            "1 to 200 characters",
        ),
        (
            Question(text="hello", sources=[DataSource(name="n" * 201)]),
            "question.sources.name",
            "1 to 200 characters",
        ),
        (
            Question(text="hello", sources=[DataSource(name="a.csv", content=b"x" * 11)]),
            "question.sources.content",
            "put the file into the data folder",
        ),
    ],
)
def test_a_question_that_cannot_be_answered_is_refused_by_field_and_fix(
    question: Question, field: str, fix: str
) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        check_question(question, SETTINGS)

    assert caught.value.field == field
    assert fix in caught.value.problem


def test_a_message_never_repeats_what_was_sent_at_length() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        check_question(Question(text="x" * 10_000_000), GatewaySettings())

    assert len(caught.value.message) < 200
