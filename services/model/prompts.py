"""Checks what is asked of a model, and says which field is wrong."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from services.model.backend import Capabilities, Prompt
from services.model.config import ModelSettings
from services.runtime.conversation import Message
from services.runtime.conversation_rules import require_conversation, require_options
from services.runtime.errors import InvalidArgumentError
from services.runtime.generation_options import JSON_OBJECT, JSON_SCHEMA

MAX_MESSAGES = 1000


def checked(prompt: Prompt, settings: ModelSettings, can: Capabilities) -> Prompt:
    """Return what is asked for, within the limits of the settings.

    Raises:
        InvalidArgumentError: its messages are no conversation, a number is outside of its range, or
            it asks for what the model cannot do.
    """
    _require_able(prompt, can)
    require_options(prompt)
    require_messages(prompt.messages, settings, _texts(prompt))
    if prompt.continues_last:
        _require_continuable(prompt.messages)
    limit = settings.output_limit
    return replace(prompt, max_output_tokens=min(prompt.max_output_tokens or limit, limit))


def require_messages(
    messages: Sequence[Message], settings: ModelSettings, beside: Iterable[str] = ()
) -> None:
    """Refuse what is no conversation, or too much of one.

    Args:
        messages: the conversation.
        settings: say how long it may be.
        beside: what is sent beside it.

    Raises:
        InvalidArgumentError: it has no messages or too many, they are no conversation, or too long.
    """
    if not 0 < len(messages) <= MAX_MESSAGES:
        raise InvalidArgumentError("messages", f"send 1 to {MAX_MESSAGES} messages")
    require_conversation(messages, "messages")
    length = sum(len(text.encode()) for text in (*_said(messages), *beside))
    if length > settings.max_prompt_bytes:
        raise InvalidArgumentError(
            "messages", f"{length} bytes are too much; send at most {settings.max_prompt_bytes}"
        )


def _said(messages: Sequence[Message]) -> Iterator[str]:
    for message in messages:
        yield message.content
        yield message.reasoning
        yield from (call.arguments for call in message.tool_calls)


def _texts(prompt: Prompt) -> Iterator[str]:
    for tool in prompt.tools:
        yield tool.description
        yield tool.arguments_schema
    if prompt.response_format is not None:
        yield prompt.response_format.description
        yield prompt.response_format.schema


def _require_able(prompt: Prompt, can: Capabilities) -> None:
    """Refuse what the model cannot do: left out in silence, its caller would take it for done."""
    form = prompt.response_format
    kind = form.kind if form is not None else ""
    strict = any(tool.strict for tool in prompt.tools)
    for needed, able, field, problem, setting in (
        (prompt.tools, can.tools, "tools", "calls no tools", "tools"),
        (strict, can.strict_tools, "tools", "keeps to no schema strictly", "strict_tools"),
        (
            prompt.single_tool_call,
            can.single_tool_call,
            "single_tool_call",
            "cannot be held to one tool call",
            "single_tool_call",
        ),
        (prompt.seed is not None, can.seed, "seed", "takes no seed", "seed"),
        (
            kind == JSON_OBJECT,
            can.json_object,
            "response_format",
            "is not known to write JSON",
            "json_object",
        ),
        (
            kind == JSON_SCHEMA,
            can.json_schema,
            "response_format",
            "holds to no JSON schema",
            "json_schema",
        ),
        (
            prompt.continues_last,
            can.prefill,
            "continues_last",
            "cannot go on from an assistant's message",
            "prefill",
        ),
    ):
        if needed and not able:
            raise InvalidArgumentError(
                field,
                f"this model {problem}; leave it out, or set `{setting}` in its section where it "
                "can",
            )


def _require_continuable(messages: Sequence[Message]) -> None:
    last = messages[-1]
    if last.role != "assistant" or last.tool_calls:
        raise InvalidArgumentError(
            "continues_last", "the last message must be an assistant's, without tool calls"
        )
