"""Tests the tools that read the caller's data, from arguments to result."""

import asyncio
import dataclasses
import threading
from collections.abc import Callable

import pytest

from services.runtime.errors import SelfTimeoutError
from services.tool.config import ToolSettings
from services.tool.errors import DataSourceError, SqlRefusedError
from services.tool.interruption import Interruption
from services.tool.source import DataSource
from services.tool.tools import sql as sql_module
from services.tool.tools.sql import TOOL, SqlArguments
from tests.unit.tool.conftest import MakeContext
from tests.waiting import until

SALES = DataSource("sales.csv", b"region,revenue\nEast,10.5\nWest,20\nEast,1\n")
ENDLESS = "SELECT count(*) FROM generate_series(1, 1000000000000) AS t(n) WHERE n % 7 = 3"

# The very first query imports the database, which nothing can interrupt.
ANYTHING = SqlArguments(query="SELECT 1")


@pytest.fixture
def query_began(monkeypatch: pytest.MonkeyPatch) -> Callable[[], asyncio.Event]:
    """Return a maker of an event that is set when the query is handed to the database."""

    def watch() -> asyncio.Event:
        loop, began = asyncio.get_running_loop(), asyncio.Event()

        class Telling(Interruption):
            def watch(self, target: object) -> None:
                super().watch(target)  # type: ignore[arg-type]  # passed on as it came
                if target is not None:
                    loop.call_soon_threadsafe(began.set)

        monkeypatch.setattr(sql_module, "Interruption", Telling)
        return began

    return watch


async def test_a_query_over_the_callers_file_is_answered(make_context: MakeContext) -> None:
    query = "SELECT region, sum(revenue) AS total FROM sales GROUP BY region ORDER BY total"

    result = await TOOL.run(SqlArguments(query=query), make_context(SALES))

    assert result.data["rows"] == [["East", 11.5], ["West", 20.0]]
    assert result.artifacts == ()


async def test_several_files_can_be_joined(make_context: MakeContext) -> None:
    managers = DataSource("managers.csv", "region,manager\nEast,陈\nWest,Bo\n".encode())
    query = "SELECT manager, sum(revenue) FROM sales JOIN managers USING (region) GROUP BY 1"

    result = await TOOL.run(SqlArguments(query=query), make_context(SALES, managers))

    assert sorted(map(str, result.data["rows"])) == ["['Bo', 20.0]", "['陈', 11.5]"]  # type: ignore[arg-type]  # rows are a list


async def test_the_tool_rooms_own_limit_of_rows_holds(make_context: MakeContext) -> None:
    context = make_context(SALES, settings=ToolSettings(max_rows=2))

    result = await TOOL.run(SqlArguments(query="SELECT * FROM sales", max_rows=1000), context)

    assert (result.data["row_count"], result.data["truncated"]) == (2, True)


async def test_refusals_come_out_typed(make_context: MakeContext) -> None:
    with pytest.raises(SqlRefusedError):
        await TOOL.run(SqlArguments(query="DROP TABLE sales"), make_context(SALES))
    with pytest.raises(DataSourceError):
        await TOOL.run(
            SqlArguments(query="SELECT 1"), make_context(DataSource("b.csv", b'a\n"x\n'))
        )


async def test_a_cancelled_query_stops_and_frees_its_thread(
    make_context: MakeContext, query_began: Callable[[], asyncio.Event]
) -> None:
    context, began = make_context(SALES), query_began()
    await TOOL.run(ANYTHING, context)
    began.clear()
    task = asyncio.ensure_future(TOOL.run(SqlArguments(query=ENDLESS), context))
    await asyncio.wait_for(began.wait(), 5)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 5)

    await until(lambda: context.workers.inflight == 0)
    assert (await TOOL.run(ANYTHING, context)).data["rows"] == [[1]]


async def test_a_query_ends_at_its_own_timeout(make_context: MakeContext) -> None:
    context = make_context(SALES, settings=ToolSettings(query_timeout_s=0.2))
    await TOOL.run(ANYTHING, dataclasses.replace(context, settings=ToolSettings()))

    with pytest.raises(SelfTimeoutError):
        await TOOL.run(SqlArguments(query=ENDLESS), context)

    await until(lambda: context.workers.inflight == 0)


async def test_a_query_ends_at_the_hops_deadline(make_context: MakeContext) -> None:
    await TOOL.run(ANYTHING, make_context(SALES))
    context = make_context(SALES, remaining_s=0.2)

    with pytest.raises(SelfTimeoutError):
        await TOOL.run(SqlArguments(query=ENDLESS), context)

    await until(lambda: context.workers.inflight == 0)


async def test_no_thread_is_left_when_many_callers_go_at_once(
    make_context: MakeContext, query_began: Callable[[], asyncio.Event]
) -> None:
    context, began = make_context(SALES), query_began()
    await TOOL.run(ANYTHING, make_context(DataSource("x.csv", b"a\n1\n")))
    began.clear()
    before = threading.active_count()
    tasks = [
        asyncio.ensure_future(TOOL.run(SqlArguments(query=ENDLESS), context)) for _ in range(12)
    ]
    await asyncio.wait_for(began.wait(), 5)

    for task in tasks:
        task.cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)

    assert [type(outcome) for outcome in outcomes] == [asyncio.CancelledError] * 12, outcomes
    # Twelve databases that are just being opened may take longer than their callers wait.
    await until(lambda: context.workers.inflight == 0)
    assert threading.active_count() <= before + context.settings.worker_count
