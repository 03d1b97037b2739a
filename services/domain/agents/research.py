"""Answers questions about policies and products from documents, with its sources."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pydantic import JsonValue

from services.domain import wording
from services.domain.agent import Agent, Answer
from services.domain.phrasing import foreign_number, tell_if_cut
from services.domain.run import Run
from services.runtime.conversation import Message
from services.runtime.errors import SixhopError
from services.runtime.generation_options import GenerationOptions

MAX_RESULTS = 3
"""More do not fit into a small model's prompt, which costs it a second per 100 tokens."""
MAX_PROMPT_CHARS = {"en": 900, "zh": 300}
"""About 230 tokens of text for a small model."""
MAX_OUTPUT_TOKENS = 120
RESERVE_S = 0.3
"""Kept for the last words: a passage and the sources."""
SEARCH_S = 0.2
"""What searching takes on a busy machine."""
MODEL_S = 2.0
"""What a quick model needs for its first words and a few more."""
EXTRACT_CHARS = 600
_NO_SEARCH = {
    "en": "The documents cannot be searched right now, and without them I do not know the answer. "
    "Please ask again later.",
    "zh": "目前无法查找资料，没有资料我无法回答这个问题。请稍后再问。",
}
_EMPTY_ANSWER = re.compile(r"[\W_]*")


@dataclass(frozen=True, slots=True)
class _Result:
    title: str
    source: str
    text: str


async def research(run: Run) -> Answer:
    """Search, let the model answer from what was found, and list the sources always.

    Without a search there is no answer, and that is what it says.
    """
    zh = run.language == "zh"
    title = "查找资料" if zh else "Search the documents"
    found = await run.optional(
        "search",
        {"query": run.question[:2000], "max_results": MAX_RESULTS},
        title=title,
        expected_s=SEARCH_S,
        reserve_s=RESERVE_S,
    )
    if found is None:
        run.say(_NO_SEARCH["zh" if zh else "en"])
        return Answer()
    results = _results(found.data)
    if not results:
        run.say(
            "资料中没有找到相关内容。请换一种说法提问。"
            if zh
            else "The documents say nothing about this. Try other words."
        )
        return Answer()
    answer = await _answered(run, results)
    run.say_and_mark(_sources_text(results, zh=zh))
    return replace(answer, sources=tuple(dict.fromkeys(result.source for result in results)))


async def _answered(run: Run, results: list[_Result]) -> Answer:
    """Say the model's answer; a passage of the documents when it has none or invents numbers."""
    needed_s, left_s = MODEL_S + RESERVE_S, run.time_remaining_s()
    if left_s < needed_s:
        reason = wording.too_late(left_s, needed_s, run.language)
        _extract(run, results, reason, started=False)
        return Answer()
    # What the check below may refuse must not be read for good before.
    held, started = not run.restartable, False
    try:
        async with run.generate(
            _messages(run, results),
            options=GenerationOptions(max_output_tokens=MAX_OUTPUT_TOKENS, temperature=0.0),
            reserve_s=RESERVE_S,
            held=held,
        ) as generation:
            async for text in generation:
                if not held:
                    run.say(text)
                    started = True
            result = generation.result
    except SixhopError as error:
        reason = wording.no_model(error.message, run.language)
        _extract(run, results, reason, started=started)
        return Answer()
    said = result.text
    number = foreign_number(said, [run.question, *(result.text for result in results)])
    if number:
        reason = wording.foreign_number(result.model, number, run.language)
        _extract(run, results, reason, started=started)
        return Answer(usage=result.usage)
    if _EMPTY_ANSWER.fullmatch(said):
        _extract(run, results, wording.empty_answer(run.language), started=started)
        return Answer(usage=result.usage)
    if held:
        run.say(said)
    missing = tell_if_cut(run, result)
    return Answer(
        model=result.model,
        usage=result.usage,
        missing=missing,
        finish_reason=result.finish_reason,
    )


def _extract(run: Run, results: list[_Result], reason: str, *, started: bool) -> None:
    """Say the best passage itself, in place of what a model may have begun."""
    if started:
        run.restart(reason)
    run.degraded(mechanism="extract", part="answer", reason=reason)
    best = results[0]
    run.say(f"{best.title}: {_cut(best.text, EXTRACT_CHARS)}")


def _messages(run: Run, results: list[_Result]) -> list[Message]:
    zh = run.language == "zh"
    left = MAX_PROMPT_CHARS["zh" if zh else "en"]
    passages = []
    for result in results:
        passage = _cut(result.text, left)
        left -= len(passage)
        passages.append(f"{result.title}: {passage}")
        if left < 80:
            break
    joined = "\n".join(passages)
    if zh:
        rules = "只根据下面的资料用简体中文简短回答问题。资料中没有的内容，请说不知道。"
        return [
            Message("system", rules),
            Message("user", f"资料：\n{joined}\n\n问题：{run.question}"),
        ]
    rules = "Answer in one or two sentences, only from the text. If it is not there, say so."
    task = f"Text:\n{joined}\n\nQuestion: {run.question}"
    return [Message("system", rules), Message("user", task)]


def _sources_text(results: list[_Result], *, zh: bool) -> str:
    lines = dict.fromkeys(f"- {result.title} ({result.source})" for result in results)
    return "\n\n" + "\n".join(["来源：" if zh else "Sources:", *lines])


def _results(data: Mapping[str, JsonValue]) -> list[_Result]:
    found = data.get("results")
    if not isinstance(found, list):
        return []
    return [
        _Result(
            title=str(entry.get("title", "")),
            source=str(entry.get("source", "")),
            text=" ".join(str(entry.get("text") or entry.get("snippet") or "").split()),
        )
        for entry in found
        if isinstance(entry, dict)
    ]


def _cut(text: str, limit: int) -> str:
    """Return the beginning of a text, up to the last whole sentence that fits."""
    if len(text) <= limit:
        return text
    cut = text[: max(0, limit)]
    end = max(cut.rfind(mark) for mark in (". ", "。", "! ", "? ", "！", "？"))
    return cut[: end + 1].strip() if end > limit // 3 else f"{cut.strip()}…"


AGENT = Agent(
    name="research",
    needed_tools=("search",),
    description="Answers questions about policies and products from documents, with sources.",
    examples=(
        "What is your return policy?",
        "How long is the warranty on a kettle?",
        "Can I return an opened item?",
        "Which payment methods do you accept?",
        "How do I care for a cast iron pan?",
        "How much does express shipping cost?",
        "What are the rules of the loyalty programme?",
        "Why do parcels to the west take longer?",
        "Do you deliver to other countries?",
        "Is wrapping or delivery free of charge?",
        "Which size should I choose?",
        "How do I return a damaged article?",
        "退货政策是什么？",
        "保修期有多长？",
        "拆封的商品可以退吗？",
        "支持哪些支付方式？",
        "如何保养铸铁锅？",
        "加急配送要多少钱？",
        "会员计划有哪些规则？",
        "衣服尺码应该怎么选？",
        "退款需要几天到账？",
        "邮费怎么收？",
    ),
    run=research,
)
