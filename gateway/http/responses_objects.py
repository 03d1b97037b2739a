"""Defines responses and their parts as OpenAI's clients read them."""

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from gateway.http.failing import ErrorDetails
from gateway.http.telling import RunTold

Status = Literal["in_progress", "completed", "incomplete", "failed"]
ItemStatus = Literal["in_progress", "completed", "incomplete"]


class OutputText(TypedDict):
    """Is the text of an answer."""

    type: Literal["output_text"]
    text: str
    annotations: list[Any]
    logprobs: list[Any]


class OutputMessage(TypedDict):
    """Is what the answer says."""

    type: Literal["message"]
    id: str
    status: ItemStatus
    role: Literal["assistant"]
    content: list[OutputText]


class FunctionCall(TypedDict):
    """Asks the caller to run one of its tools."""

    type: Literal["function_call"]
    id: str
    call_id: str
    """What the tool's output has to name."""
    name: str
    arguments: str
    """JSON, if the model kept to its rules."""
    status: ItemStatus


OutputItem = OutputMessage | FunctionCall


class InputDetails(TypedDict):
    """Is not known here, and so zero."""

    cached_tokens: int
    cache_write_tokens: int


class OutputDetails(TypedDict):
    """Is not known here, and so zero."""

    reasoning_tokens: int


class ResponseUsage(TypedDict):
    """Counts the tokens of a run."""

    input_tokens: int
    input_tokens_details: InputDetails
    output_tokens: int
    output_tokens_details: OutputDetails
    total_tokens: int
    estimated: bool
    """Whether the provider gave no count, and this is our estimate."""


class IncompleteDetails(TypedDict):
    """Says why a response is not all."""

    reason: Literal["max_output_tokens"]


class ResponseError(ErrorDetails):
    """Says why a response failed; `code` is OpenAI's, and `reason` is ours."""


class FunctionToolTold(TypedDict):
    """Is a tool as it was offered."""

    type: Literal["function"]
    name: str
    description: str | None
    parameters: dict[str, Any] | None
    strict: bool | None


class TextTold(TypedDict):
    """Is the form of the text that was asked for."""

    format: dict[str, Any]


class ReasoningTold(TypedDict):
    """Says nothing: no agent is told how much to think."""

    effort: None
    summary: None


class ResponseObject(TypedDict):
    """Is a response, as far as it has come."""

    id: str
    object: Literal["response"]
    created_at: int
    """When, in seconds since 1970."""
    status: Status
    background: Literal[False]
    error: ResponseError | None
    incomplete_details: IncompleteDetails | None
    instructions: str | None
    max_output_tokens: int | None
    metadata: dict[str, str]
    model: str
    """What was asked for, and at the end who wrote the text."""
    output: list[OutputItem]
    parallel_tool_calls: bool
    previous_response_id: None
    reasoning: ReasoningTold
    store: Literal[False]
    temperature: float | None
    text: TextTold
    tool_choice: str | dict[str, Any]
    tools: list[FunctionToolTold]
    top_p: float | None
    truncation: Literal["disabled"]
    usage: ResponseUsage | None
    sixhop: NotRequired[RunTold]
    """Once the response is complete."""


class ResponseEvent(TypedDict):
    """Is one event of a response; which fields it has besides these, its type says."""

    type: str
    """`response.created`, `response.in_progress`, `response.output_item.added` and `.done`,
    `response.content_part.added` and `.done`, `response.output_text.delta` and `.done`,
    `response.function_call_arguments.delta` and `.done`, and at the end `response.completed`,
    `response.incomplete` or `response.failed`."""
    sequence_number: int
    """Counts from 0 without gaps."""
    response: NotRequired[ResponseObject]
    output_index: NotRequired[int]
    item: NotRequired[OutputItem]
    item_id: NotRequired[str]
    content_index: NotRequired[int]
    part: NotRequired[OutputText]
    delta: NotRequired[str]
    text: NotRequired[str]
    arguments: NotRequired[str]
    name: NotRequired[str]
    logprobs: NotRequired[list[Any]]
