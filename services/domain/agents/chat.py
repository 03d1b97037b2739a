"""Talks about anything that no other agent is for, with the model alone."""

from services.domain.agent import Agent, Answer
from services.domain.phrasing import tell_if_cut
from services.domain.run import Run
from services.domain.wording import prompt_note
from services.runtime.conversation import Message

MAX_QUESTION_CHARS = 4000
MAX_OUTPUT_TOKENS = 256
_RULES = {
    "en": "You are the assistant of sixhop. Answer briefly and kindly, in English.",
    "zh": "你是 sixhop 的助手。请用简体中文简短、友好地回答。",
}


async def chat(run: Run) -> Answer:
    """Say what the model says, as it says it.

    Raises:
        SixhopError: the model failed; there is nothing to fall back to.
    """
    rules = _RULES["zh" if run.language == "zh" else "en"]
    note = prompt_note(run.unavailable(), run.language)
    messages = [
        Message("system", f"{rules} {note}".strip()),
        *run.history,
        Message("user", run.question[:MAX_QUESTION_CHARS]),
    ]
    if len(run.question) > MAX_QUESTION_CHARS:
        reason = f"only its first {MAX_QUESTION_CHARS} characters were read"
        run.degraded(mechanism="partial", part="question", reason=reason)
    async with run.generate(messages, max_output_tokens=MAX_OUTPUT_TOKENS) as generation:
        async for text in generation:
            run.say(text)
        result = generation.result
    missing = tell_if_cut(run, result)
    return Answer(model=result.model, usage=result.usage, missing=missing)


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
    run=chat,
)
