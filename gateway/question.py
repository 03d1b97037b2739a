"""Checks questions at the door, so that no hop behind it has to."""

from gateway.config import GatewaySettings
from gateway.history import check_history
from services.runtime.conversation_rules import require_options
from services.runtime.errors import InvalidArgumentError
from services.runtime.generation_options import options_from_wire
from services.runtime.language import LANGUAGES
from sixhop.type.v1 import chat_pb2, run_pb2

MAX_NAME_CHARS = 200


def check_question(question: run_pb2.Question, settings: GatewaySettings) -> None:
    """Refuse a question that no agent could answer.

    Raises:
        InvalidArgumentError: names the field and what would be right.
    """
    text = question.text.strip()
    if not text and not _ends_open(question):
        raise InvalidArgumentError(
            "question.text",
            "is empty; ask something, or end the history with a user's message or a tool's result",
        )
    if len(question.text) > settings.max_question_chars:
        raise InvalidArgumentError(
            "question.text",
            f"has {len(question.text):,} characters, the limit is "
            f"{settings.max_question_chars:,}; put long text into a file",
        )
    if "\0" in text:
        raise InvalidArgumentError("question.text", "contains a NUL character; remove it")
    if question.language not in ("", *LANGUAGES):
        raise InvalidArgumentError(
            "question.language", f"must be empty or one of {', '.join(LANGUAGES)}"
        )
    if len(question.session_id) > MAX_NAME_CHARS:
        raise InvalidArgumentError("question.session_id", "is longer than 200 characters")
    if question.history:
        check_history(question.history, settings)
    if question.tools or question.tool_choice or question.generation.ByteSize():
        _check_options(question, settings)
    if question.sources:
        _check_sources(question, settings)


def _ends_open(question: run_pb2.Question) -> bool:
    """Tell whether the history ends with what is to be answered."""
    return bool(question.history) and question.history[-1].role in (
        chat_pb2.CHAT_ROLE_USER,
        chat_pb2.CHAT_ROLE_TOOL,
    )


def _check_options(question: run_pb2.Question, settings: GatewaySettings) -> None:
    size = sum(tool.ByteSize() for tool in question.tools)
    if size > settings.max_tools_bytes:
        raise InvalidArgumentError(
            "question.tools",
            f"have {size:,} bytes, the limit is {settings.max_tools_bytes:,}; shorten their "
            "descriptions and schemas, or offer fewer",
        )
    size = question.generation.response_format.ByteSize()
    if size > settings.max_format_bytes:
        raise InvalidArgumentError(
            "question.generation.response_format",
            f"has {size:,} bytes, the limit is {settings.max_format_bytes:,}; shorten the schema",
        )
    options = options_from_wire(question.generation, question.tools, question.tool_choice)
    require_options(options, at="question.generation.", tools_at="question.")


def _check_sources(question: run_pb2.Question, settings: GatewaySettings) -> None:
    if len(question.sources) > settings.max_source_count:
        raise InvalidArgumentError(
            "question.sources",
            f"has {len(question.sources)} files, the limit is {settings.max_source_count}",
        )
    for source in question.sources:
        if not source.name or len(source.name) > MAX_NAME_CHARS:
            raise InvalidArgumentError(
                "question.sources.name", "must be a file's name of 1 to 200 characters"
            )
        if len(source.content) > settings.max_source_bytes:
            raise InvalidArgumentError(
                "question.sources.content",
                f"{source.name} has {len(source.content):,} bytes, the limit is "
                f"{settings.max_source_bytes:,}; put the file into the data folder of the tool "
                "hop and give only its name",
            )
