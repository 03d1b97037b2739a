"""Holds what is sent as a conversation, or asked of its model, to the rules of every provider.

The gateway and the model hop go by the same rules; each names the fields as its callers sent them.
"""

import re
from collections.abc import Collection, Sequence
from typing import Any

import orjson

from services.runtime.conversation import Message, ToolOffer
from services.runtime.errors import InvalidArgumentError
from services.runtime.generation_options import (
    JSON_OBJECT,
    JSON_SCHEMA,
    GenerationOptions,
    ResponseFormat,
)

CHOICES = ("auto", "none", "required")
"""What a tool choice may be besides the name of a tool."""
MAX_TOOLS = 128
MAX_STOPS = 4
MAX_STOP_CHARS = 256
MAX_TEMPERATURE = 2.0
LEVELS_AROUND = 16
"""More than a request has around a schema."""
SCHEMA_PROBLEM = "send a JSON schema: an object, nested no deeper than 200 levels"
MAX_TOLD = 8
MAX_TOLD_CHARS = 64
NAME = "[A-Za-z0-9_-]{1,64}"
"""What the name of a tool, or of a schema, is made of."""
_NAME = re.compile(NAME)


def require_conversation(messages: Sequence[Message], at: str) -> None:
    """Refuse what is no conversation.

    Args:
        messages: what was said, oldest first.
        at: the field that holds it, such as `messages`.

    Raises:
        InvalidArgumentError: a message is empty or has what its role has not, or tool calls and
            their results do not fit together.
    """
    for number, message in enumerate(messages):
        _require_message(f"{at}[{number}]", message)
    _require_answered(messages, at)


def require_options(options: GenerationOptions, at: str = "", tools_at: str = "") -> None:
    """Refuse what no provider could be asked for.

    Args:
        options: what is asked for.
        at: the field that holds the options, with a dot behind it; empty when they are fields
            of their own.
        tools_at: the same for the tools and the choice among them.

    Raises:
        InvalidArgumentError: a number is outside of its range, a tool cannot be offered, or the
            choice, the stops or the form of the text are not what they can be.
    """
    require_tools(options.tools, f"{tools_at}tools")
    _require_choice(options, f"{tools_at}tool_choice")
    if options.single_tool_call and not options.tools:
        raise InvalidArgumentError(f"{at}single_tool_call", "offer a tool, or leave it out")
    if options.max_output_tokens < 0:
        raise InvalidArgumentError(f"{at}max_output_tokens", "send 0 or a positive number")
    temperature, top_p = options.temperature, options.top_p
    # Written so that what is no number is refused as well.
    if temperature is not None and not 0 <= temperature <= MAX_TEMPERATURE:
        problem = f"send 0 to {MAX_TEMPERATURE:g}, or leave it out"
        raise InvalidArgumentError(f"{at}temperature", problem)
    if top_p is not None and not 0 < top_p <= 1:
        raise InvalidArgumentError(f"{at}top_p", "send more than 0 and up to 1, or leave it out")
    if len(options.stop) > MAX_STOPS:
        raise InvalidArgumentError(f"{at}stop", f"send at most {MAX_STOPS}")
    if not all(0 < len(stop) <= MAX_STOP_CHARS for stop in options.stop):
        raise InvalidArgumentError(f"{at}stop", f"send 1 to {MAX_STOP_CHARS} characters in each")
    if options.response_format is not None:
        _require_format(options.response_format, f"{at}response_format")


def require_tools(tools: Sequence[ToolOffer], at: str) -> None:
    """Refuse tools that cannot be offered; as `require_options` does."""
    if len(tools) > MAX_TOOLS:
        raise InvalidArgumentError(at, f"has {len(tools)} tools; send at most {MAX_TOOLS}")
    for number, tool in enumerate(tools):
        if not _NAME.fullmatch(tool.name) or tool.name in CHOICES:
            raise InvalidArgumentError(
                f"{at}[{number}].name",
                "use 1 to 64 letters, digits, _ and -, and none of " + ", ".join(CHOICES),
            )
        if tool.arguments_schema and not _is_schema(tool.arguments_schema):
            raise InvalidArgumentError(f"{at}[{number}].arguments_schema", SCHEMA_PROBLEM)
    if len({tool.name for tool in tools}) < len(tools):
        raise InvalidArgumentError(at, "offer each tool once")


def _require_message(at: str, message: Message) -> None:
    if message.role != "assistant" and (message.tool_calls or message.reasoning):
        field = "tool_calls" if message.tool_calls else "reasoning"
        raise InvalidArgumentError(f"{at}.{field}", "only an assistant thinks and calls tools")
    if bool(message.tool_call_id) is not (message.role == "tool"):
        raise InvalidArgumentError(
            f"{at}.tool_call_id", "name the call that a tool's result answers, and nowhere else"
        )
    # A tool may well have found nothing.
    if not message.content and not message.tool_calls and message.role != "tool":
        raise InvalidArgumentError(f"{at}.content", "is empty; say something, or leave it out")
    for place, call in enumerate(message.tool_calls):
        if not call.id or not call.name:
            raise InvalidArgumentError(
                f"{at}.tool_calls[{place}]", "give the call an id and a name"
            )
    if len({call.id for call in message.tool_calls}) < len(message.tool_calls):
        raise InvalidArgumentError(f"{at}.tool_calls", "give each call its own id")


def _require_answered(messages: Sequence[Message], at: str) -> None:
    """Refuse results that answer no call, and calls without one: every provider does."""
    open_ids: set[str] = set()
    for number, message in enumerate(messages):
        if message.role == "tool":
            if message.tool_call_id not in open_ids:
                raise InvalidArgumentError(
                    f"{at}[{number}].tool_call_id",
                    "no call right before it has this id, or it was answered already",
                )
            open_ids.remove(message.tool_call_id)
            continue
        if open_ids:
            raise InvalidArgumentError(
                f"{at}[{number}]",
                f"comes before the results of these tool calls: {_listed(open_ids)}",
            )
        open_ids = {call.id for call in message.tool_calls}
    if open_ids:
        raise InvalidArgumentError(
            at, f"ends before the results of these tool calls: {_listed(open_ids)}"
        )


def _require_choice(options: GenerationOptions, at: str) -> None:
    choice, names = options.tool_choice, {tool.name for tool in options.tools}
    if not choice or choice in names or (choice in CHOICES and (names or choice != "required")):
        return
    raise InvalidArgumentError(
        at, f"say {', '.join(CHOICES)} or the name of an offered tool; offered: {_listed(names)}"
    )


def _require_format(form: ResponseFormat, at: str) -> None:
    if form.kind not in (JSON_OBJECT, JSON_SCHEMA):
        raise InvalidArgumentError(f"{at}.kind", f"say text, {JSON_OBJECT} or {JSON_SCHEMA}")
    if form.kind == JSON_OBJECT:
        if form.name or form.description or form.schema or form.strict is not None:
            raise InvalidArgumentError(at, f"say more than the kind with {JSON_SCHEMA} alone")
        return
    if not _NAME.fullmatch(form.name):
        raise InvalidArgumentError(f"{at}.name", "use 1 to 64 letters, digits, _ and -")
    if not _is_schema(form.schema):
        raise InvalidArgumentError(f"{at}.schema", SCHEMA_PROBLEM)


def _listed(names: Collection[str]) -> str:
    """Return names for people; an error must not repeat at length what was sent."""
    told = [name[:MAX_TOLD_CHARS] for name in sorted(names)[:MAX_TOLD]]
    more = [f"{len(names) - MAX_TOLD} more"] if len(names) > MAX_TOLD else []
    return ", ".join(told + more) or "none"


def _is_schema(text: str) -> bool:
    try:
        found: Any = orjson.loads(text)
        # JSON may be nested deeper where it is read than where it is written, in a request.
        for _ in range(LEVELS_AROUND):
            found = [found]
        orjson.dumps(found)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return False
    return text.lstrip().startswith("{")
