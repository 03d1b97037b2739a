"""Defines what a model backend is: how to reach a provider, and what it can do."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Literal, Protocol

from pydantic import JsonValue

from services.runtime.call import Call
from services.runtime.clock import Clock
from services.runtime.conversation import Message, ToolCall
from services.runtime.generation import Usage
from services.runtime.generation_options import GenerationOptions
from services.runtime.http_pools import HttpPool
from services.runtime.stream import Wire


@dataclass(frozen=True, slots=True)
class Prompt(GenerationOptions):
    """Asks for one completion, in no provider's dialect: a conversation, and how to go on."""

    messages: Sequence[Message]
    """The conversation, oldest first."""
    continues_last: bool = False
    """Whether the last message, an assistant's, is to be gone on from and not answered."""


@dataclass(frozen=True, slots=True)
class Text:
    """Adds to the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """Adds to the model's reasoning, which is progress but not the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallPart:
    """Says that a tool call grows: progress, and nothing to act on yet."""

    name: str
    """The tool; empty while the model has not named it."""
    byte_count: int
    """How many bytes were added."""


@dataclass(frozen=True, slots=True)
class Finish:
    """Ends a completion that the provider says is complete."""

    model: str
    """The model that wrote, as the provider names it."""
    finish_reason: str
    """`stop`, `length` or `tool_calls`."""
    usage: Usage

    @property
    def written(self) -> int | None:
        """Return how many tokens the provider says that it wrote; None when it does not say."""
        return None if self.usage.estimated else self.usage.output_token_count


Growth = Text | Reasoning | ToolCallPart
"""What a completion gives as it comes."""
Piece = Growth | ToolCall | Finish
"""What a completion gives: first what comes, then tool calls, whole, then its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """Says what a model can do, so that nobody pretends."""

    tools: bool = False
    """It calls tools when asked to."""
    strict_tools: bool = False
    """It keeps to the schema of a tool exactly when told to."""
    single_tool_call: bool = False
    """It asks for one tool at most when told to."""
    seed: bool = False
    """It takes a seed."""
    json_object: bool = False
    """It writes JSON when told to."""
    json_schema: bool = False
    """It holds its answer to a JSON schema."""
    prefill: bool = False
    """It goes on from an assistant message that it is given."""
    late_rules: bool = False
    """It takes system messages behind others; many chat templates take one, the first."""
    reasoning: bool = False
    """It may send its reasoning before its answer."""
    wants_reasoning: bool = False
    """It wants its own earlier reasoning back with tool calls; others never get it."""
    window: int = 8192
    """The tokens that prompt and answer may have together."""
    languages: tuple[str, ...] = ()
    """The languages that it writes well, as ISO 639 codes; empty says nothing about it."""


Tokenizer = Literal["deepseek", "server", "estimate"]
"""Who counts a prompt's tokens: the vocabulary of DeepSeek, the provider itself in the way of
llama.cpp, or nobody, so that it is estimated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefill:
    """Says how a request tells that its last message is to be gone on from."""

    message: Mapping[str, JsonValue] = field(default_factory=dict)
    """More fields of the last message."""
    body: Mapping[str, JsonValue] = field(default_factory=dict)
    """More fields of the request."""
    base_path: str = ""
    """The path under which only such requests are served, instead of the API's; empty when they
    are served as all others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """Says how a family of providers differs from what all of OpenAI's dialect have in common."""

    name: str = "plain"
    """What the setting `dialect` says to choose it."""
    hosts: tuple[str, ...] = ()
    """The hosts that speak it, with the dot before a domain's name for all below it."""
    capabilities: Capabilities = Capabilities()
    """What its models can do, when neither the table of models nor the settings say else."""
    models: Mapping[str, Capabilities] = field(default_factory=dict)
    """Its models by name, with what each can do."""
    retired: Mapping[str, str] = field(default_factory=dict)
    """Names that the provider does not serve any more, and what to use instead."""
    max_tokens_field: str = "max_tokens"
    """What it calls the limit of an answer's length."""
    thinking_on: Mapping[str, JsonValue] = field(default_factory=dict)
    """The fields that let a model think before it answers."""
    thinking_off: Mapping[str, JsonValue] = field(default_factory=dict)
    """The fields that keep it from that."""
    thinks: bool | None = None
    """Which of the two are sent when the settings say nothing; None sends neither."""
    prefill: Prefill = Prefill()
    """How it is asked to go on from the last message."""
    tokenizer: Tokenizer = "estimate"
    """Who counts its tokens."""


PLAIN = Dialect()


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """Holds what a backend needs to know of the provider that it calls."""

    base_url: str
    """Where its API begins, without a slash at the end."""
    model: str
    """The model's name on the wire."""
    api_key: str = field(default="", repr=False)
    """The secret; empty for providers that want none."""
    section: str = "model"
    """Which section of the configuration says all this, for messages."""
    key_setting: str = "SIXHOP_MODEL__API_KEY"
    """Which setting holds the secret, for messages."""
    model_setting: str = "SIXHOP_MODEL__MODEL"
    """Which one holds the model's name."""
    url_setting: str = "SIXHOP_MODEL__BASE_URL"
    """Which one holds the address."""
    unreachable_hint: str = "is SIXHOP_MODEL__BASE_URL right?"
    """What to check when nobody answers there, for messages."""
    dialect: Dialect = PLAIN
    """How it is spoken with."""
    can: Capabilities = Capabilities()
    """What the model can do."""
    thinks: bool | None = None
    """Whether the model is told to think before it answers; None does not tell it."""
    max_tokens_field: str = "max_tokens"
    """What the provider calls the limit of an answer's length."""
    extra_body: Mapping[str, JsonValue] = field(default_factory=dict)
    """More fields of every request's body, such as one that turns thinking off."""
    connect_timeout_s: float = 2.0
    """The longest wait for a connection, a free place in the pool included."""
    min_event_interval_s: float = 0.04
    """Pieces that arrive closer together than this are joined; the first never waits."""
    models_timeout_s: float = 0.0
    """How long the start may wait for the list of its models; 0 does not ask for it."""
    max_written_tokens: int = 100_000
    """An answer that is longer, reasoning included, is cut off as the provider's fault."""


class Engine(Protocol):
    """Is an open door to one provider."""

    async def open(self, prompt: Prompt, call: Call) -> Wire[Piece]:
        """Ask for one completion that may last `call.attempt_timeout_s`.

        Raises:
            SixhopError: the provider cannot be reached or refuses.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """Is one way to speak with providers; a file in backends/ exports one as `BACKEND`."""

    name: str
    """What the setting `backend` says to choose it."""
    capabilities: Capabilities
    """What its models can do when the settings say nothing else."""
    connect: Callable[[Provider, HttpPool, Clock], AbstractAsyncContextManager[Engine]]
    """Opens the door to a provider, over connections of the pool, for as long as the process
    serves; raises ConfigError when it can tell that no call will do."""
