"""Talks about anything that no other agent is for, with the model and the caller's own tools."""

from collections.abc import Sequence
from dataclasses import replace

from services.domain.agent import Agent, Answer
from services.domain.phrasing import tell_if_cut
from services.domain.run import Run
from services.domain.wording import prompt_note, read_in_part
from services.runtime.conversation import Message
from services.runtime.generation_options import NO_OPTIONS

MAX_QUESTION_CHARS = 8000
"""As long as the gateway takes a question where it is not told otherwise."""
MAX_OUTPUT_TOKENS = 256
"""How long an answer may be where the caller does not say it."""
_RULES = {
    "en": "You are the assistant of sixhop. Answer briefly and kindly, in English.",
    "zh": "你是 sixhop 的助手。请用简体中文简短、友好地回答。",
}


async def chat(run: Run) -> Answer:
    """Say what the model says, as it says it, and which of the caller's tools it asks for.

    Raises:
        SixhopError: the model failed; there is nothing to fall back to.
    """
    options = run.options or NO_OPTIONS
    if not options.max_output_tokens:
        options = replace(options, max_output_tokens=MAX_OUTPUT_TOKENS)
    if len(run.question) > MAX_QUESTION_CHARS:
        reason = read_in_part(MAX_QUESTION_CHARS, run.language)
        run.degraded(mechanism="partial", part="question", reason=reason)
    async with run.generate(_messages(run), options=options) as generation:
        async for text in generation:
            run.say(text)
        result = generation.result
    # Who says how to generate reads the finish reason, and wants the text as it is.
    missing = tell_if_cut(run, result, marked=run.options is None)
    run.ask_for(result.tool_calls)
    return Answer(
        model=result.model,
        usage=result.usage,
        missing=missing,
        finish_reason=result.finish_reason,
    )


def _messages(run: Run) -> Sequence[Message]:
    """Return what the model is given; without a question it answers the history."""
    rules = _RULES["zh" if run.language == "zh" else "en"]
    note = prompt_note(run.unavailable(), run.language)
    # One message: many chat templates take one of the system's, the first.
    begun = next(
        (number for number, message in enumerate(run.history) if message.role != "system"),
        len(run.history),
    )
    own = [message.content for message in run.history[:begun]]
    asked = [Message("user", run.question[:MAX_QUESTION_CHARS])] if run.question.strip() else []
    return [
        Message("system", "\n\n".join((f"{rules} {note}".strip(), *own))),
        *run.history[begun:],
        *asked,
    ]


AGENT = Agent(
    name="chat",
    description="Talks: greetings, small talk, jokes, general knowledge, and what sixhop can do.",
    examples=(
        "Hello, how are you?",
        "Tell me a joke.",
        "Who are you and what can you do?",
        "What is the capital of France?",
        "Write a short poem about the sea.",
        "Thank you, that was helpful!",
        "Explain gravity to a child.",
        "What's the weather like today?",
        "Who painted the Mona Lisa?",
        "Sing a song for me.",
        "I am sad today.",
        "你好，你是谁？",
        "给我讲个笑话",
        "你能做什么？",
        "法国的首都是哪里？",
        "写一首关于春天的短诗",
        "谢谢你的帮助！",
        "今天天气怎么样？",
        "早上好",
        "陪我聊聊天吧",
    ),
    converses=True,
    run=chat,
)
