"""Tests how files become tables."""

import sqlite3
import tempfile
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

from services.tool.cache import BoundedCache
from services.tool.config import ToolSettings
from services.tool.dataset import Dataset, cached_dataset, load
from services.tool.errors import DataSourceError, DataSourceNotFoundError
from services.tool.interruption import InterruptedWorkError, Interruption
from services.tool.source import DataSource

Loaded = Callable[..., Dataset]


def rows(dataset: Dataset, table: str | None = None) -> list[tuple[object, ...]]:
    name = table or dataset.tables[0].name
    return dataset.cursor().execute(f'SELECT * FROM "{name}"').fetchall()


def kinds(dataset: Dataset) -> dict[str, str]:
    return {column.name: column.kind.value for column in dataset.tables[0].columns}


@pytest.fixture
def temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_values_get_the_types_that_their_column_shows(loaded: Loaded) -> None:
    dataset = loaded(
        "day,when,amount,count,paid,note\n"
        '2025-01-02,2025-01-02 10:30,"$1,234.50",3,true, x \n'
        "2025-01-03,2025-01-03 11:00,-$5,,false,\n"
    )

    # The database's timestamps have no zone, as the file's have none.
    at = datetime.fromisoformat
    assert rows(dataset) == [
        (date(2025, 1, 2), at("2025-01-02 10:30"), Decimal("1234.5000"), 3, True, "x"),
        (date(2025, 1, 3), at("2025-01-03 11:00"), Decimal("-5.0000"), None, False, None),
    ]


def test_chinese_columns_in_the_encoding_of_chinese_spreadsheets_become_numbers(
    loaded: Loaded,
) -> None:
    text = (
        '订单号,日期,金额,地区\n001,2025年1月2日,"¥1,234.50",华东\n002,2025年1月3日,¥99.00,华北\n'
    )

    dataset = loaded(text.encode("gb18030"), "订单.csv")

    assert dataset.tables[0].name == "订单"
    assert kinds(dataset) == {"订单号": "text", "日期": "date", "金额": "number", "地区": "text"}
    assert rows(dataset)[0] == ("001", date(2025, 1, 2), Decimal("1234.5000"), "华东")


def test_one_value_that_does_not_fit_keeps_the_column_text(loaded: Loaded) -> None:
    text = "a\n" + "\n".join(str(number) for number in range(2000)) + "\nunknown\n"

    assert kinds(loaded(text)) == {"a": "text"}


def test_sums_of_prices_are_exact_and_medians_keep_half_a_cent(loaded: Loaded) -> None:
    dataset = loaded("price\n0.10\n0.20\n0.30\n0.41\n")

    total, median = (
        dataset.cursor().execute("SELECT sum(price), median(price) FROM sales").fetchall()[0]
    )

    assert total == Decimal("1.01")
    assert median == Decimal("0.25")
    assert loaded("price\n0.10\n0.15\n").cursor().execute(
        "SELECT median(price) FROM sales"
    ).fetchone() == (Decimal("0.125"),)


def test_percentages_become_fractions(loaded: Loaded) -> None:
    dataset = loaded("rate\n12.5%\n3%\n")

    assert [float(str(value)) for (value,) in rows(dataset)] == [0.125, 0.03]


def test_what_was_assumed_is_noted(loaded: Loaded) -> None:
    dataset = loaded("day,amount\n01/02/2025,$3.50\n")

    assert dataset.tables[0].notes == (
        "day: dates were read as month/day/year",
        "amount: currency signs and thousands separators were removed",
    )


def test_a_day_above_twelve_decides_how_dates_are_read(loaded: Loaded) -> None:
    assert rows(loaded("day\n01/02/2025\n25/02/2025\n")) == [
        (date(2025, 2, 1),),
        (date(2025, 2, 25),),
    ]


@pytest.mark.parametrize(
    ("file", "table"),
    [
        ("My Sales (2026).csv", "my_sales_2026"),
        ("order.csv", "t_order"),
        ("2026.csv", "t_2026"),
        ("销售.csv", "销售"),
        ("../../etc/passwd", "passwd"),
        ("-.csv", "data"),
    ],
)
def test_tables_are_named_after_their_files(loaded: Loaded, file: str, table: str) -> None:
    dataset = loaded("a\n1\n", file)

    assert dataset.tables[0].name == table
    assert dataset.cursor().execute(f"SELECT a FROM {table}").fetchall() == [(1,)]


def test_two_files_of_one_name_become_two_tables() -> None:
    sources = [DataSource("a.csv", b"x\n1\n"), DataSource("A.csv", b"x\n2\n")]

    dataset = load(sources, ToolSettings(), Interruption())

    assert [table.name for table in dataset.tables] == ["a", "a_2"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"a,b\n1,2\n3,4,5\n", "line 3 has 3 values but there are 2 columns"),
        (b"a,b,c\n1,2,3\n3,4\n", "line 3 has 2 values but there are 3 columns"),
        (b'a,b\n1,"2\n3,4\n', "quotation mark"),
        (b"a,b\n", "no rows"),
        (b"PK\x03\x04rest", "save the sheet as CSV"),
        (b"\x00\x01\x02", "not a text file"),
        (b"PAR1 is cut", "cannot be read"),
        (b"SQLite format 3\x00 is cut", "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_read_says_why_and_leaves_no_file(
    loaded: Loaded, temporary_folder: Path, content: bytes, problem: str
) -> None:
    with pytest.raises(DataSourceError, match=problem) as refused:
        loaded(content, "bad.csv")

    assert refused.value.source_name == "bad.csv"
    assert str(temporary_folder) not in str(refused.value)
    assert list(temporary_folder.iterdir()) == []


def test_parquet_keeps_its_types_and_shows_nested_values_as_text(
    loaded: Loaded, tmp_path: Path, temporary_folder: Path
) -> None:
    file = tmp_path / "p.parquet"
    duckdb.execute(
        "COPY (SELECT '2025-01-01' AS d, 1.5::DOUBLE AS v, [1, 2] AS l, 7::UTINYINT AS u) "
        f"TO '{file}' (FORMAT parquet)"
    )

    dataset = loaded(file.read_bytes(), "p.parquet")

    assert kinds(dataset) == {"d": "date", "v": "number", "l": "text", "u": "integer"}
    assert rows(dataset) == [(date(2025, 1, 1), 1.5, "[1, 2]", 7)]
    assert list(temporary_folder.iterdir()) == []


def test_every_table_of_an_sqlite_file_is_loaded(
    loaded: Loaded, tmp_path: Path, temporary_folder: Path
) -> None:
    file = tmp_path / "shop.db"
    connection = sqlite3.connect(file)
    connection.executescript(
        "CREATE TABLE sales (v REAL, day TEXT, n INTEGER, raw BLOB);"
        "INSERT INTO sales VALUES (1.5, '2025-01-01', NULL, x'0011');"
        'CREATE TABLE "other table" (x); INSERT INTO "other table" VALUES (1);'
        "CREATE VIEW never_read AS SELECT 1;"
    )
    connection.close()

    dataset = loaded(file.read_bytes(), "shop.db")

    assert [table.name for table in dataset.tables] == ["sales", "other_table"]
    assert rows(dataset, "sales") == [(Decimal("1.500"), date(2025, 1, 1), None, "<2 bytes>")]
    assert list(temporary_folder.iterdir()) == []


def test_a_loaded_database_reads_no_file_and_changes_no_setting(
    loaded: Loaded, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n", encoding="utf-8")
    cursor = loaded("a\n1\n").cursor()

    for statement in (
        f"SELECT * FROM read_csv('{secret}')",
        f"SELECT * FROM '{secret}'",
        f"COPY sales TO '{tmp_path / 'out.csv'}'",
        f"ATTACH '{tmp_path / 'other.db'}'",
        "SET enable_external_access = true",
        "SET memory_limit = '10GB'",
        "INSTALL httpfs",
        "LOAD httpfs",
    ):
        with pytest.raises(duckdb.Error):
            cursor.execute(statement)

    assert [file.name for file in tmp_path.iterdir()] == ["secret.csv"]


def test_a_query_cannot_see_the_variables_of_the_process(loaded: Loaded) -> None:
    visible = duckdb.sql("SELECT 1 AS a")

    with pytest.raises(duckdb.CatalogException):
        loaded("a\n1\n").cursor().execute("SELECT * FROM visible")
    assert visible is not None


def test_a_dataset_is_loaded_once_while_it_stays_in_the_cache() -> None:
    cache, settings = BoundedCache(2), ToolSettings()
    first, second, third = (
        [DataSource("a.csv", content)] for content in (b"x\n1\n", b"x\n2\n", b"x\n3\n")
    )

    def get(sources: list[DataSource]) -> Dataset:
        return cached_dataset(sources, settings, cache, Interruption())

    kept = get(first)
    get(second)
    assert get(first) is kept
    get(third)
    assert get(first) is kept
    assert len(cache) == 2


def test_loading_for_a_caller_who_has_gone_does_not_begin() -> None:
    interruption = Interruption()
    interruption()

    with pytest.raises(InterruptedWorkError):
        load([DataSource("a.csv", b"x\n1\n")], ToolSettings(), interruption)


def test_without_sources_the_default_dataset_is_used() -> None:
    dataset = cached_dataset((), ToolSettings(), BoundedCache(1), Interruption())

    assert [table.name for table in dataset.tables] == ["orders"]
    assert dataset.tables[0].row_count > 3000


@pytest.mark.parametrize("name", ["nope", "../config", "/etc/passwd", "../data/orders"])
def test_a_named_dataset_is_only_ever_one_of_the_folder(name: str) -> None:
    with pytest.raises(DataSourceNotFoundError, match="known: orders"):
        cached_dataset([DataSource(name)], ToolSettings(), BoundedCache(1), Interruption())


def test_a_file_above_the_cap_is_refused_with_both_sizes() -> None:
    settings = ToolSettings(max_source_bytes=10)

    with pytest.raises(DataSourceError, match=r"it has .* MiB and .* MiB are allowed"):
        cached_dataset(
            [DataSource("a.csv", b"x\n" * 20)], settings, BoundedCache(1), Interruption()
        )


def test_an_empty_file_of_the_callers_is_not_looked_for_in_the_folder() -> None:
    with pytest.raises(DataSourceError, match="the file is empty"):
        cached_dataset([DataSource("mine.csv")], ToolSettings(), BoundedCache(1), Interruption())


@pytest.mark.parametrize(
    ("name", "format_name"),
    [("bad.parquet", "Parquet"), ("bad.sqlite", "SQLite"), ("BAD.DB", "SQLite")],
)
@pytest.mark.parametrize("content", [b"nope", b"a,b\n1,2\n"])
def test_a_file_that_is_not_what_its_suffix_promises_is_refused_as_that(
    loaded: Loaded, name: str, format_name: str, content: bytes
) -> None:
    with pytest.raises(DataSourceError, match=f"not a {format_name} file"):
        loaded(content, name)
