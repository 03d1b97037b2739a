"""Answers questions about the user's data with numbers, a chart and a report."""

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from services.domain.agent import TEMPLATE, Agent, Answer
from services.domain.metrics.analysis import Analysis
from services.domain.metrics.facts import Facts, facts_of
from services.domain.metrics.guard import refuse_writing, select_in
from services.domain.metrics.layout import chart_arguments, table_arguments
from services.domain.metrics.listing import listing_text, rows_of
from services.domain.metrics.prose import Prose, brief_of, prose_of, title_of
from services.domain.metrics.prose_check import check_prose
from services.domain.metrics.schema import tables_of
from services.domain.metrics.sql import ROW_LIMIT, query_sql
from services.domain.phrasing import (
    Phrasing,
    phrasing_of,
    tell_if_switched,
    template_only,
    told_unused,
)
from services.domain.ports import Artifact
from services.domain.run import Run
from services.runtime.generation import Usage

RESERVE_S = 0.3
"""Kept for the last words: the answer is already computed, only events are left to send."""
CHART_S = 0.3
"""What drawing takes on a busy machine."""
PDF_S = 0.8
"""What writing the report takes on a busy machine."""
PROSE_S = 2.0
"""What a quick model needs for three sentences; a slow one is cut by its own limits."""
MAX_PROSE_WORDS = 60


async def report(run: Run) -> Answer:
    """Answer from the data; chart, a model's prose and PDF as the time allows.

    Raises:
        ReadOnlyError: the question asks to change data.
        NotUnderstoodError: it names nothing that the data has.
        SixhopError: the data could not be read or queried.
    """
    refuse_writing(run.question)
    query = select_in(run.question)
    if query is not None:
        return await _listing(run, query)
    return await _Report(run).answer()


async def _listing(run: Run, query: str) -> Answer:
    """Run the user's own SELECT; the tool parses and bounds it."""
    title = "执行查询" if run.language == "zh" else "Run the query"
    result = await run.tool("sql", {"query": query}, title=title, part="numbers")
    run.say_and_mark(listing_text(result.data, run.language))
    return Answer(sources=(query,))


class _Report:
    """Makes one report."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._zh = run.language == "zh"
        self._artifacts: list[Artifact] = []
        self._out: frozenset[str] = frozenset()
        self._model = TEMPLATE
        self._usage = Usage()

    async def answer(self) -> Answer:
        """Return the answer; only the profile and the query can fail it."""
        # Said before anything is waited for.
        self._out = self._run.leave_out_unavailable({"pdf": self._pdf_title})
        title = self._pick("Look at the data", "查看数据")
        profile = await self._run.tool("profile", {}, title=title, part="columns")
        analysis = Analysis(self._run.question, tables_of(profile.data), self._run.language)
        while (lookup := analysis.lookup()) is not None:
            title = self._pick("Look up dates and values", "查找日期和取值")
            analysis.learn(lookup, await self._rows(lookup.sql, title))
        query = analysis.query()
        sql = query_sql(query)
        title = self._pick("Compute the numbers", "计算数据")
        facts = facts_of(query, await self._rows(sql, title))
        template = prose_of(facts)
        await self._chart(facts)
        prose = await self._prose(facts, template)
        self._run.say("\n\n".join([prose, *self._notes(facts)]))
        await self._pdf(facts, template, prose)
        return Answer(
            model=self._model,
            usage=self._usage,
            artifacts=tuple(self._artifacts),
            sources=(analysis.table.name, sql),
        )

    async def _rows(self, sql: str, title: str) -> Sequence[Mapping[str, JsonValue]]:
        arguments: dict[str, JsonValue] = {"query": sql, "max_rows": ROW_LIMIT}
        result = await self._run.tool("sql", arguments, title=title, part="numbers")
        return rows_of(result.data)

    async def _chart(self, facts: Facts) -> None:
        arguments = None if facts.empty else chart_arguments(facts)
        if arguments is None:
            return
        title = self._pick("Draw the chart", "绘制图表")
        result = await self._run.optional(
            "chart", arguments, title=title, expected_s=CHART_S, reserve_s=RESERVE_S
        )
        self._artifacts += result.artifacts if result else ()

    async def _prose(self, facts: Facts, template: Prose) -> str:
        """Return a model's words when they pass the check, else the template's."""
        if facts.empty:
            return template.text
        title = self._pick("Put it into words", "撰写文字")
        arguments: dict[str, JsonValue] = {
            "instruction": self._pick(
                "Say in two sentences what the facts say.", "用两句话说明下面的事实。"
            ),
            "text": brief_of(facts),
            "language": "zh" if self._zh else "en",
            "max_words": MAX_PROSE_WORDS,
        }
        written = await self._run.optional(
            "summarise",
            arguments,
            title=title,
            expected_s=PROSE_S,
            reserve_s=RESERVE_S if "pdf" in self._out else PDF_S + RESERVE_S,
            part="prose",
            partial=template_only(template.text),
        )
        phrasing = phrasing_of(written)
        tell_if_switched(self._run, phrasing, "prose")
        return template.text if phrasing is None else self._checked(facts, template, phrasing)

    def _checked(self, facts: Facts, template: Prose, phrasing: Phrasing) -> str:
        self._usage += phrasing.usage
        if told_unused(self._run, phrasing, check_prose(phrasing.text, facts).reason):
            return template.text
        self._model = phrasing.model or TEMPLATE
        return phrasing.text

    async def _pdf(self, facts: Facts, template: Prose, prose: str) -> None:
        if "pdf" in self._out:
            return
        paragraphs: list[JsonValue] = [prose]
        if prose != template.text:
            paragraphs.append(template.text)
        notes: list[JsonValue] = [*self._all_notes(facts)]
        arguments: dict[str, JsonValue] = {
            "title": title_of(facts),
            "subtitle": self._run.question[:200],
            "language": "zh" if self._zh else "en",
            "paragraphs": paragraphs,
            "table": table_arguments(facts),
            "chart": None if facts.empty else chart_arguments(facts),
            "notes": notes,
        }
        result = await self._run.optional(
            "pdf", arguments, title=self._pdf_title, expected_s=PDF_S, reserve_s=RESERVE_S
        )
        self._artifacts += result.artifacts if result else ()

    @property
    def _pdf_title(self) -> str:
        return self._pick("Write the report", "生成报告")

    def _all_notes(self, facts: Facts) -> list[str]:
        stale = self._run.stale_note()
        return [*facts.query.notes, *([stale] if stale else [])]

    def _notes(self, facts: Facts) -> list[str]:
        notes = self._all_notes(facts)
        if not notes:
            return []
        lines = "\n".join(f"- {note}" for note in notes)
        return [f"{self._pick('Notes:', '说明：')}\n{lines}"]

    def _pick(self, en: str, zh: str) -> str:
        return zh if self._zh else en


AGENT = Agent(
    name="reports",
    reads_data=True,
    needed_tools=("profile", "sql"),
    description="Answers questions about the user's data with numbers, a chart and a PDF report.",
    examples=(
        "How many orders were placed in April?",
        "Count the orders in the South.",
        "How many orders have a quantity above 5?",
        "四月有多少订单？",
        "数量大于5的订单的金额是多少？",
        "Which category grew most last quarter?",
        "How did revenue develop by month?",
        "What was the total revenue in Q3 2026?",
        "What are the top five products by sales?",
        "What is the return rate by category?",
        "Compare sales in the north and the south.",
        "How many units did we sell in July?",
        "What share of turnover came from online orders?",
        "What is the average order value per region?",
        "Which month had the lowest profit?",
        "How many customers bought something this year?",
        "Make a sales report for last month.",
        "How many orders were there each week?",
        "What percentage of customers is in each region?",
        "Which product was returned most?",
        "Which weekday is the best for sales?",
        "SELECT region, SUM(revenue) FROM sales GROUP BY region",
        # Refused, and by the agent that knows why.
        "Drop the table of sales and delete all its rows.",
        "上个季度哪个品类增长最多？",
        "每个月的销售额走势如何？",
        "2026年第三季度的总收入是多少？",
        "销量前五名的产品有哪些？",
        "各地区的退货率是多少？",
        "华北和华南的销售额对比",
        "客单价最高的地区是哪个？",
        "线上渠道占总销售额的比例是多少？",
        "今年的销售额同比增长了多少？",
        "帮我生成上个月的销售报告",
        "每个月的订单数量是多少？",
        "哪个产品退货最多？",
        "消费金额排名前十的客户",
        "删除表中的所有数据",
    ),
    run=report,
)
