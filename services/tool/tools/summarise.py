"""Writes a short text about given facts with the model."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from services.runtime.conversation import Message
from services.runtime.errors import DependencyFailedError, Origin
from services.runtime.topology import MODEL
from services.tool.registry import Fallback, Group, Tool, ToolContext, ToolResult

# Small local models need about 1.6 tokens for an English word and 2 for a Chinese character with
# its share of punctuation; a quarter on top lets a last sentence end.
TOKENS_PER_WORD = {"en": 1.6, "zh": 2.0}
SPARE_RATIO = 1.25
MAX_TEXT_CHARS = 6000

_RULES = {
    "en": (
        "You write for a manager. Write in English, at most {max_words} words, plain sentences, no "
        "list, no heading. Use only facts and numbers from the text. Change no number."
    ),
    "zh": (
        "你为经理撰写文字。请用简体中文，不超过{max_words}个字，写成连贯的句子，不用列表和标题。"
        "只使用文中给出的事实和数字，不要改动任何数字。"
    ),
}
_TASK = {"en": "{instruction}\n\nText:\n{text}", "zh": "{instruction}\n\n文本：\n{text}"}


class SummariseArguments(BaseModel):
    """Takes a text and what to make of it."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    instruction: str = Field(min_length=1, max_length=1000)
    """What to write, in one sentence."""

    text: str = Field(min_length=1, max_length=MAX_TEXT_CHARS)
    """The facts; small models read about 6,000 characters well."""

    language: Literal["en", "zh"] = "en"
    """The language to write in."""

    max_words: int = Field(default=80, ge=5, le=500)
    """Most words of English, or characters of Chinese."""


async def summarise(arguments: SummariseArguments, context: ToolContext) -> ToolResult:
    """Return the model's text, whole, with the model's name."""
    generation = await context.model.generate(
        messages(arguments), max_output_tokens=max_output_tokens(arguments)
    )
    text = generation.text.strip()
    if not generation.finish_reason:
        raise _failed("the model's text ended without a finish reason", "TRUNCATED")
    if not text:
        raise _failed("the model wrote nothing", "EMPTY")
    data: dict[str, JsonValue] = {
        "text": text,
        "model": generation.model,
        "finish_reason": generation.finish_reason,
        "input_tokens": generation.usage.input_token_count,
        "output_tokens": generation.usage.output_token_count,
    }
    if generation.switch is not None:
        # The caller tells its reader that another model wrote than usual, and why.
        data["backup"] = {
            "problem": generation.switch.problem,
            "error_reason": generation.switch.error_reason,
            "origin_reason": generation.switch.origin_reason,
        }
    return ToolResult(data)


def messages(arguments: SummariseArguments) -> list[Message]:
    """Return the prompt: about 60 tokens of rules, the instruction and the text."""
    language = arguments.language
    rules = _RULES[language].format(max_words=arguments.max_words)
    # Replaced one by one: braces in the user's text mean nothing.
    before, after = _TASK[language].split("{instruction}")
    task = before + arguments.instruction.strip() + after.replace("{text}", arguments.text.strip())
    return [Message("system", rules), Message("user", task)]


def max_output_tokens(arguments: SummariseArguments) -> int:
    """Return the tokens that the wanted words need at most."""
    return round(arguments.max_words * TOKENS_PER_WORD[arguments.language] * SPARE_RATIO)


def _failed(problem: str, reason: str) -> DependencyFailedError:
    return DependencyFailedError(
        MODEL, problem, cause=reason.lower(), origin=Origin(MODEL, code="OK", reason=reason)
    )


TOOL = Tool(
    name="summarise",
    description="Writes a short text in English or Chinese about given facts, with the model.",
    arguments=SummariseArguments,
    run=summarise,
    timeout_s=15.0,
    # The model, and the provider behind it, live on a part of this.
    min_timeout_s=5.0,
    # Its time is the model's: the breaker of the model watches that.
    slow_call_s=15.0,
    max_concurrency=8,
    fallback=(Fallback.PARTIAL, Fallback.SKIP),
    idempotent=True,
    group=Group.AUXILIARY,
)
