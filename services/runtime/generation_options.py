"""Defines how a text may be asked for besides its prompt, and carries it over the wire."""

from collections.abc import Sequence
from dataclasses import dataclass

from services.runtime.conversation import ToolOffer, offer_from_wire
from sixhop.type.v1 import chat_pb2, generation_pb2

JSON_OBJECT = "json_object"
JSON_SCHEMA = "json_schema"
FREE_CHOICES = ("", "auto", "none")
"""The tool choices that any text without a tool call satisfies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseFormat:
    """Says what JSON a text has to be."""

    kind: str
    """`json_object`, or `json_schema` for one that fits a schema."""
    name: str = ""
    """The name of the schema; empty without one."""
    description: str = ""
    """What the schema is for, for the model; may be empty."""
    schema: str = ""
    """The schema as JSON; empty without one."""
    strict: bool | None = None
    """Whether the provider is told to be strict; None leaves it to the provider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationOptions:
    """Says how a text is to be generated; what is left out is left to whoever writes it."""

    max_output_tokens: int = 0
    """The most tokens to write; 0 leaves it to whoever is asked."""
    temperature: float | None = None
    """Randomness, 0 to 2."""
    top_p: float | None = None
    """The part of the likeliest tokens to draw from, above 0 and up to 1."""
    stop: tuple[str, ...] = ()
    """The text ends before any of these."""
    seed: int | None = None
    """Asks for the same text for the same prompt."""
    response_format: ResponseFormat | None = None
    """The JSON that the text has to be; None for free text."""
    tools: Sequence[ToolOffer] = ()
    """The tools that the model may ask for."""
    tool_choice: str = ""
    """`auto`, `none`, `required`, or the name of an offered tool; empty is `auto`."""
    single_tool_call: bool = False
    """Whether an answer may ask for one tool at most."""

    @property
    def needs_conversing(self) -> bool:
        """Return whether only who converses can do as it says; others may leave numbers unread."""
        return bool(
            self.tools
            or self.tool_choice not in FREE_CHOICES
            or self.stop
            or self.response_format
            or self.single_tool_call
        )


NO_OPTIONS = GenerationOptions()


def options_from_wire(
    sent: generation_pb2.GenerationOptions,
    tools: Sequence[chat_pb2.ToolOffer],
    tool_choice: str,
) -> GenerationOptions:
    """Return what has travelled, with the tools that travel beside it."""
    return GenerationOptions(
        max_output_tokens=sent.max_output_tokens,
        temperature=sent.temperature if sent.HasField("temperature") else None,
        top_p=sent.top_p if sent.HasField("top_p") else None,
        stop=tuple(sent.stop),
        seed=sent.seed if sent.HasField("seed") else None,
        response_format=format_from_wire(sent.response_format),
        tools=[offer_from_wire(tool) for tool in tools],
        tool_choice=tool_choice,
        single_tool_call=sent.single_tool_call,
    )


def format_from_wire(sent: generation_pb2.ResponseFormat) -> ResponseFormat | None:
    """Return a form that has travelled; None for free text."""
    if sent.kind in ("", "text"):
        return None
    return ResponseFormat(
        kind=sent.kind,
        name=sent.name,
        description=sent.description,
        schema=sent.schema,
        strict=sent.strict if sent.HasField("strict") else None,
    )


def format_to_wire(form: ResponseFormat) -> generation_pb2.ResponseFormat:
    """Return a form as it travels."""
    return generation_pb2.ResponseFormat(
        kind=form.kind,
        name=form.name,
        description=form.description,
        schema=form.schema,
        strict=form.strict,
    )
