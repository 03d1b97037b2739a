"""Looks up orders: where one is, or the latest of a customer."""

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from services.domain.agent import TEMPLATE, Agent, Answer
from services.domain.agents.reports import report
from services.domain.metrics.guard import refuse_writing
from services.domain.metrics.listing import rows_of
from services.domain.metrics.order_check import check_order_prose
from services.domain.metrics.order_lookup import (
    OrderBook,
    asks_for_a_count,
    not_found,
    told,
    told_list,
)
from services.domain.metrics.schema import tables_of
from services.domain.phrasing import (
    phrasing_of,
    tell_if_switched,
    template_only,
    told_unused,
)
from services.domain.run import Run

RESERVE_S = 0.3
"""Kept for the last words."""
PROSE_S = 2.0
"""What a quick model needs for a sentence."""
MAX_PROSE_WORDS = 40


async def look_up(run: Run) -> Answer:
    """Answer from the orders in the data; an order that is not there is an answer, no error.

    A number over many orders is no look-up: it is answered as a report.

    Raises:
        ReadOnlyError: the question asks to change an order.
        NotUnderstoodError: the data has no orders.
        SixhopError: the data could not be read.
    """
    refuse_writing(run.question)
    if asks_for_a_count(run.question):
        return await report(run)
    zh = run.language == "zh"
    title = "查看数据" if zh else "Look at the data"
    profile = await run.tool("profile", {}, title=title, part="columns")
    book = OrderBook(tables_of(profile.data), run.question, run.language)
    title = "查找订单" if zh else "Look up the order"
    names = book.name_lookup()
    if names is not None:
        book.learn_names(await _rows(run, names, title))
    sources = (book.table.name,)
    stranger = "" if book.number() else book.unknown_customer()
    if stranger:
        run.say_and_mark(not_found("", stranger, run.language))
        return Answer(sources=sources)
    search = book.search()
    rows = await _rows(run, search.sql, title)
    if not rows:
        run.say_and_mark(not_found(search.number, search.of, run.language))
        return Answer(sources=sources)
    if not search.number:
        run.say_and_mark(told_list(book, rows, search.of, run.language))
        return Answer(sources=sources)
    return await _one(run, book, rows, sources)


async def _rows(run: Run, sql: str, title: str) -> Sequence[Mapping[str, JsonValue]]:
    return rows_of((await run.tool("sql", {"query": sql}, title=title, part="numbers")).data)


async def _one(
    run: Run,
    book: OrderBook,
    rows: Sequence[Mapping[str, JsonValue]],
    sources: tuple[str, ...],
) -> Answer:
    """Tell about one order, in a model's words when they pass the check."""
    zh = run.language == "zh"
    template = told(book, rows, run.language)
    title = "撰写文字" if zh else "Put it into words"
    ask = (
        "用一句话告诉客户订单在哪里。"
        if zh
        else "Tell the customer in one sentence where the order is."
    )
    arguments: dict[str, JsonValue] = {
        "instruction": ask,
        "text": template[:1500],
        "language": "zh" if zh else "en",
        "max_words": MAX_PROSE_WORDS,
    }
    written = await run.optional(
        "summarise",
        arguments,
        title=title,
        expected_s=PROSE_S,
        reserve_s=RESERVE_S,
        part="prose",
        partial=template_only(template),
    )
    phrasing = phrasing_of(written)
    tell_if_switched(run, phrasing, "prose")
    if phrasing is None:
        run.say_and_mark(template)
        return Answer(sources=sources)
    problem = check_order_prose(phrasing.text, book, rows, run.language)
    if told_unused(run, phrasing, problem):
        run.say_and_mark(template)
        return Answer(usage=phrasing.usage, sources=sources)
    run.say_and_mark(f"{phrasing.text}\n\n{template}")
    return Answer(model=phrasing.model or TEMPLATE, usage=phrasing.usage, sources=sources)


AGENT = Agent(
    name="orders",
    reads_data=True,
    needed_tools=("profile", "sql"),
    description="Looks up single orders, their status and delivery, or a customer's latest.",
    examples=(
        "Where is order 1043?",
        "What is the status of order SO-10020?",
        "Has my order shipped yet?",
        "When will order #2077 arrive?",
        "Show me the latest orders of Mei Nakamura.",
        "What did customer Harbor Hotels order last?",
        "Is order 1187 delivered or still on its way?",
        "Track order SO-12010 for me.",
        "What has this customer bought recently?",
        "Where is my parcel?",
        "订单1043在哪里？",
        "查一下订单SO-10020的状态",
        "我的订单发货了吗？",
        "订单2077什么时候能送到？",
        "客户李雷最近的订单有哪些？",
        "1187号订单送达了吗？",
        "帮我跟踪一下这个订单",
        "我的包裹到哪里了？",
    ),
    run=look_up,
)
