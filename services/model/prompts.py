"""Checks what is asked of a model, and says which field is wrong."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import orjson

from services.model.backend import Capabilities, Prompt
from services.model.config import ModelSettings
from services.model.requests import CHOICES
from services.runtime.conversation import Message, ToolOffer
from services.runtime.errors import InvalidArgumentError

MAX_MESSAGES = 1000
MAX_TEMPERATURE = 2.0
MAX_TOOLS = 128
_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def checked(prompt: Prompt, settings: ModelSettings, can: Capabilities) -> Prompt:
    """Return what is asked for, within the limits of the settings.

    Raises:
        InvalidArgumentError: its messages are no conversation, a number is outside of its range, or
            it asks for what the model cannot do.
    """
    _require_tools(prompt.tools, can)
    require_conversation(prompt.messages, settings, prompt.tools)
    if prompt.max_output_tokens < 0:
        raise InvalidArgumentError("max_output_tokens", "send 0 or a positive number")
    temperature = prompt.temperature
    if temperature is not None and not 0 <= temperature <= MAX_TEMPERATURE:
        raise InvalidArgumentError("temperature", f"send 0 to {MAX_TEMPERATURE:g}, or leave it out")
    _require_choice(prompt.tool_choice, prompt.tools)
    if prompt.continues_last:
        _require_continuable(prompt.messages, can)
    limit = settings.output_limit
    return replace(prompt, max_output_tokens=min(prompt.max_output_tokens or limit, limit))


def require_conversation(
    messages: Sequence[Message], settings: ModelSettings, tools: Sequence[ToolOffer] = ()
) -> None:
    """Refuse what is no conversation.

    Raises:
        InvalidArgumentError: it has no messages, too many, or an empty or too long one, or its tool
            calls and their results do not fit together.
    """
    if not 0 < len(messages) <= MAX_MESSAGES:
        raise InvalidArgumentError("messages", f"send 1 to {MAX_MESSAGES} messages")
    for number, message in enumerate(messages):
        _require_message(f"messages[{number}]", message)
    _require_answered(messages)
    length = sum(len(text.encode()) for text in _texts(messages, tools))
    if length > settings.max_prompt_bytes:
        raise InvalidArgumentError(
            "messages", f"{length} bytes are too much; send at most {settings.max_prompt_bytes}"
        )


def _texts(messages: Sequence[Message], tools: Sequence[ToolOffer]) -> Iterator[str]:
    for message in messages:
        yield message.content
        yield message.reasoning
        yield from (call.arguments for call in message.tool_calls)
    for tool in tools:
        yield tool.description
        yield tool.arguments_schema


def _require_message(at: str, message: Message) -> None:
    if message.tool_calls and message.role != "assistant":
        raise InvalidArgumentError(f"{at}.tool_calls", "only an assistant's message calls tools")
    if bool(message.tool_call_id) is not (message.role == "tool"):
        raise InvalidArgumentError(
            f"{at}.tool_call_id", "name the call that a tool's result answers, and nowhere else"
        )
    # A tool may well have found nothing.
    if not message.content and not message.tool_calls and message.role != "tool":
        raise InvalidArgumentError(f"{at}.content", "say something")
    for place, call in enumerate(message.tool_calls):
        if not call.id or not call.name:
            where = f"{at}.tool_calls[{place}]"
            raise InvalidArgumentError(where, "give the call an id and a name")


def _require_answered(messages: Sequence[Message]) -> None:
    """Refuse results that answer no call, and calls without one: every provider does."""
    open_ids: set[str] = set()
    for number, message in enumerate(messages):
        if message.role == "tool":
            if message.tool_call_id not in open_ids:
                raise InvalidArgumentError(
                    f"messages[{number}].tool_call_id",
                    "no call right before it has this id, or it was answered already",
                )
            open_ids.remove(message.tool_call_id)
            continue
        if open_ids:
            break
        open_ids = {call.id for call in message.tool_calls}
        if len(open_ids) < len(message.tool_calls):
            raise InvalidArgumentError(
                f"messages[{number}].tool_calls", "give each call its own id"
            )
    if open_ids:
        missing = ", ".join(sorted(open_ids))
        raise InvalidArgumentError("messages", f"the results of these tool calls miss: {missing}")


def _require_tools(tools: Sequence[ToolOffer], can: Capabilities) -> None:
    if not tools:
        return
    if not can.tools:
        raise InvalidArgumentError(
            "tools",
            "this model calls no tools; send none, or set `tools` in its section where it can",
        )
    if len(tools) > MAX_TOOLS:
        raise InvalidArgumentError("tools", f"send at most {MAX_TOOLS} tools")
    for number, tool in enumerate(tools):
        _require_offer(f"tools[{number}]", tool)
    if len({tool.name for tool in tools}) < len(tools):
        raise InvalidArgumentError("tools", "offer each tool once")


def _require_offer(at: str, offer: ToolOffer) -> None:
    if not _TOOL_NAME.fullmatch(offer.name) or offer.name in CHOICES:
        raise InvalidArgumentError(
            f"{at}.name",
            "use 1 to 64 letters, digits, _ and -, and none of " + ", ".join(CHOICES),
        )
    if not offer.arguments_schema:
        return
    try:
        schema = orjson.loads(offer.arguments_schema)
    except orjson.JSONDecodeError:
        schema = None
    if not isinstance(schema, dict):
        raise InvalidArgumentError(f"{at}.arguments_schema", "send a JSON schema, an object")


def _require_choice(choice: str, tools: Sequence[ToolOffer]) -> None:
    names = {tool.name for tool in tools}
    if not choice or choice in names or (choice in CHOICES and (names or choice != "required")):
        return
    offered = ", ".join(sorted(names)) or "none"
    raise InvalidArgumentError(
        "tool_choice",
        f"say {', '.join(CHOICES)} or the name of an offered tool; offered: {offered}",
    )


def _require_continuable(messages: Sequence[Message], can: Capabilities) -> None:
    if not can.prefill:
        raise InvalidArgumentError(
            "continues_last",
            "this model cannot go on from an assistant's message; ask anew, or set `prefill` in "
            "its section where it can",
        )
    last = messages[-1]
    if last.role != "assistant" or last.tool_calls:
        raise InvalidArgumentError(
            "continues_last", "the last message must be an assistant's, without tool calls"
        )
