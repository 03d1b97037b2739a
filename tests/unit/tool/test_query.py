"""Tests what a query answers, and what bounds it."""

import threading
from collections.abc import Callable

import duckdb
import pytest
from pydantic import JsonValue

from services.tool import query as query_module
from services.tool.dataset import Dataset
from services.tool.errors import SqlInvalidError, SqlRefusedError
from services.tool.interruption import InterruptedWorkError, Interruption
from services.tool.query import answer, json_value

Loaded = Callable[..., Dataset]

CSV = "day,region,revenue,quantity\n2025-01-02,East,10.50,2\n2025-02-03,West,,1\n"
ENDLESS = "SELECT count(*) FROM generate_series(1, 1000000000000) AS t(n) WHERE n % 7 = 3"


def ask(
    dataset: Dataset, query: str, *, max_rows: int = 100, max_bytes: int = 100_000
) -> dict[str, JsonValue]:
    return answer(
        dataset, query, max_rows=max_rows, max_bytes=max_bytes, interruption=Interruption()
    )


def test_rows_are_json_with_the_types_of_their_columns(loaded: Loaded) -> None:
    assert ask(loaded(CSV), "SELECT * FROM sales ORDER BY day") == {
        "columns": [
            {"name": "day", "type": "date"},
            {"name": "region", "type": "text"},
            {"name": "revenue", "type": "number"},
            {"name": "quantity", "type": "integer"},
        ],
        "rows": [["2025-01-02", "East", 10.5, 2], ["2025-02-03", "West", None, 1]],
        "row_count": 2,
        "truncated": False,
    }


def test_months_of_dates_are_dates(loaded: Loaded) -> None:
    result = ask(loaded(CSV), "SELECT date_trunc('month', day) AS m FROM sales ORDER BY 1")

    assert result["columns"] == [{"name": "m", "type": "date"}]
    assert result["rows"] == [["2025-01-01"], ["2025-02-01"]]


def test_more_rows_than_asked_for_are_cut_and_said(loaded: Loaded) -> None:
    result = ask(loaded(CSV), "SELECT * FROM range(5000)", max_rows=700)

    assert (result["row_count"], result["truncated"]) == (700, True)


def test_as_many_rows_as_asked_for_are_not_called_cut(loaded: Loaded) -> None:
    result = ask(loaded(CSV), "SELECT * FROM range(700)", max_rows=700)

    assert (result["row_count"], result["truncated"]) == (700, False)


def test_a_result_larger_than_allowed_is_cut_and_said(loaded: Loaded) -> None:
    result = ask(loaded(CSV), "SELECT repeat('x', 1000) FROM range(100)", max_bytes=10_500)

    assert (result["row_count"], result["truncated"]) == (10, True)


def test_a_name_that_does_not_exist_is_answered_with_one_that_does(loaded: Loaded) -> None:
    with pytest.raises(SqlInvalidError, match=r'"revenu" not found.*revenue'):
        ask(loaded(CSV), "SELECT revenu FROM sales")


def test_too_much_memory_is_the_querys_fault(loaded: Loaded) -> None:
    with pytest.raises(SqlInvalidError, match="more memory than allowed"):
        ask(loaded(CSV), "SELECT * FROM range(100000000) ORDER BY 1 DESC")


def test_division_by_zero_is_null(loaded: Loaded) -> None:
    assert ask(loaded(CSV), "SELECT 1 / 0")["rows"] == [[None]]


def test_a_query_writes_nothing_even_past_the_guard(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = loaded(CSV)
    monkeypatch.setattr(query_module, "guarded", lambda query, _: query)
    monkeypatch.setattr(query_module, "_check_statement", lambda *_: None)

    with pytest.raises(SqlInvalidError, match="read-only"):
        ask(dataset, "DELETE FROM sales")

    assert dataset.cursor().execute("SELECT count(*) FROM sales").fetchone() == (2,)


def test_the_database_itself_refuses_what_is_no_select(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_module, "guarded", lambda query, _: query)

    with pytest.raises(SqlRefusedError, match="one SELECT"):
        ask(loaded(CSV), "SELECT 1; DELETE FROM sales")


def test_an_interrupted_query_ends_soon_and_the_next_one_works(loaded: Loaded) -> None:
    dataset, interruption, running = loaded(CSV), Interruption(), threading.Event()
    ended: list[type[BaseException]] = []
    watch = interruption.watch

    def watch_and_tell(target: object) -> None:
        watch(target)  # type: ignore[arg-type]  # passed on as it came
        running.set()

    interruption.watch = watch_and_tell  # type: ignore[method-assign]

    def work() -> None:
        try:
            answer(dataset, ENDLESS, max_rows=1, max_bytes=100, interruption=interruption)
        except InterruptedWorkError as error:
            ended.append(type(error))

    thread = threading.Thread(target=work)
    thread.start()
    assert running.wait(5)
    for _ in range(50):
        interruption()
        thread.join(0.1)
        if not thread.is_alive():
            break

    assert ended == [InterruptedWorkError]
    assert ask(dataset, "SELECT 1 AS x")["rows"] == [[1]]


def test_every_value_of_the_database_becomes_json() -> None:
    row = duckdb.execute(
        "SELECT 1.50::DECIMAL(9,2), 'nan'::DOUBLE, [1, NULL], {'a': DATE '2025-01-02'}, "
        "TIME '10:00', INTERVAL 1 DAY, 170141183460469231731687303715884105727::HUGEINT, NULL"
    ).fetchone()

    assert [json_value(value) for value in row or ()] == [
        1.5,
        None,
        [1, None],
        {"a": "2025-01-02"},
        "10:00:00",
        "1 day, 0:00:00",
        170141183460469231731687303715884105727,
        None,
    ]
