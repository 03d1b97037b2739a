"""Writes a prompt as the request that one provider understands."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import orjson

from services.model.backend import Prompt, Provider
from services.runtime.conversation import Message, ToolCall, ToolOffer
from services.runtime.conversation_rules import CHOICES
from services.runtime.generation_options import JSON_SCHEMA, ResponseFormat

PATH = "/chat/completions"


def request_url(provider: Provider, prompt: Prompt) -> str:
    """Return where a prompt is posted to."""
    base_path = provider.dialect.prefill.base_path
    if not prompt.continues_last or not base_path:
        return f"{provider.base_url}{PATH}"
    parts = urlsplit(provider.base_url)
    return f"{parts.scheme}://{parts.netloc}{base_path}{PATH}"


def request_body(provider: Provider, prompt: Prompt) -> Mapping[str, Any]:
    """Return what is posted; an extra field of the settings that is null takes one away."""
    dialect = provider.dialect
    messages = request_messages(provider, prompt.messages)
    prefill: Mapping[str, Any] = {}
    if prompt.continues_last:
        messages[-1] |= dialect.prefill.message
        prefill = dialect.prefill.body
    thinking: Mapping[str, Any] = {}
    if provider.thinks is not None:
        thinking = dialect.thinking_on if provider.thinks else dialect.thinking_off
    fields = {
        "stream_options": {"include_usage": True},
        provider.max_tokens_field: prompt.max_output_tokens,
        "temperature": prompt.temperature,
        "top_p": prompt.top_p,
        "seed": prompt.seed,
        **thinking,
        **prefill,
        **provider.extra_body,
        "model": provider.model,
        "messages": messages,
        "stream": True,
        # Not for the settings to change: who asks for these relies on them.
        "stop": list(prompt.stop) or None,
        "response_format": _form(prompt.response_format),
        **_tools(prompt),
    }
    return {name: value for name, value in fields.items() if value is not None}


def request_messages(provider: Provider, messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return a conversation as it is posted.

    A model that calls no tools is told of earlier calls and their results in words, and one that
    takes no rules behind what was said is told them before all of it.
    """
    if not provider.can.late_rules:
        messages = _rules_first(messages)
    if not provider.can.tools:
        return [_in_words(message) for message in messages]
    return [_message(provider, message) for message in messages]


def _rules_first(messages: Sequence[Message]) -> Sequence[Message]:
    """Return a conversation whose system messages are one, where they were not the first."""
    roles = [message.role for message in messages]
    if "system" not in roles[roles.count("system") :]:
        return messages
    rules = [message.content for message in messages if message.role == "system"]
    others = [message for message in messages if message.role != "system"]
    return [Message("system", "\n\n".join(rules)), *others]


def _message(provider: Provider, message: Message) -> dict[str, Any]:
    made: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_call_id:
        made["tool_call_id"] = message.tool_call_id
    if message.tool_calls:
        made["tool_calls"] = [_tool_call(call) for call in message.tool_calls]
        if provider.can.wants_reasoning:
            # Even an empty one: a request without the field is refused.
            made["reasoning_content"] = message.reasoning
    return made


def _tool_call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _in_words(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "user", "content": f"Result of {message.tool_call_id}: {message.content}"}
    asked = [f"Called {call.name} as {call.id}: {call.arguments}" for call in message.tool_calls]
    text = "\n".join([message.content, *asked] if message.content else asked)
    return {"role": message.role, "content": text if asked else message.content}


def _tools(prompt: Prompt) -> dict[str, Any]:
    if not prompt.tools:
        return {}
    made: dict[str, Any] = {"tools": [_offer(offer) for offer in prompt.tools]}
    if prompt.tool_choice in CHOICES:
        made["tool_choice"] = prompt.tool_choice
    elif prompt.tool_choice:
        made["tool_choice"] = {"type": "function", "function": {"name": prompt.tool_choice}}
    if prompt.single_tool_call:
        made["parallel_tool_calls"] = False
    return made


def _offer(offer: ToolOffer) -> dict[str, Any]:
    function: dict[str, Any] = {"name": offer.name, "description": offer.description}
    if offer.arguments_schema:
        function["parameters"] = orjson.loads(offer.arguments_schema)
    if offer.strict:
        function["strict"] = True
    return {"type": "function", "function": function}


def _form(form: ResponseFormat | None) -> dict[str, Any] | None:
    if form is None:
        return None
    made: dict[str, Any] = {"type": form.kind}
    if form.kind == JSON_SCHEMA:
        schema = {
            "name": form.name,
            "description": form.description or None,
            "schema": orjson.loads(form.schema),
            "strict": form.strict,
        }
        made[JSON_SCHEMA] = {name: value for name, value in schema.items() if value is not None}
    return made
