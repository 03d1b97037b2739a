"""Answers questions about tables in memory, profiled the way the `profile` tool does."""

from pathlib import Path
from typing import Any

import duckdb

from services.domain.metrics.analysis import Analysis
from services.domain.metrics.facts import Facts, facts_of
from services.domain.metrics.query import MetricQuery
from services.domain.metrics.schema import JsonValue, tables_of
from services.domain.metrics.sql import query_sql

TABLES = Path(__file__).parent / "metrics" / "tables"
_TYPES = {"DATE": "date", "BOOLEAN": "boolean", "VARCHAR": "text", "BIGINT": "integer",
          "INTEGER": "integer", "TIMESTAMP": "timestamp"}  # fmt: skip


class Database:
    """Holds tables, and answers questions about them from question to facts."""

    def __init__(self) -> None:
        self._connection = duckdb.connect()
        self._profiles: dict[str, dict[str, JsonValue]] = {}

    def close(self) -> None:
        self._connection.close()

    def load(self, name: str) -> str:
        """Load one of the CSV files of these tests."""
        path = TABLES / f"{name}.csv"
        self._connection.execute(f"CREATE TABLE {name} AS SELECT * FROM read_csv(?)", [str(path)])
        return name

    def execute(self, sql: str) -> None:
        self._connection.execute(sql)

    def profile(self, table: str) -> dict[str, JsonValue]:
        """Describe a table; once, for nobody changes a table after asking about it."""
        if table not in self._profiles:
            self._profiles[table] = self._profile(table)
        return self._profiles[table]

    def _profile(self, table: str) -> dict[str, JsonValue]:
        described = self._connection.execute(f'DESCRIBE "{table}"').fetchall()
        row_count = self._one(f'SELECT COUNT(*) FROM "{table}"')[0]
        columns = [self._column(table, row[0], row[1]) for row in described]
        return {"tables": [{"name": table, "row_count": row_count, "columns": columns}]}

    def rows(self, sql: str) -> list[dict[str, JsonValue]]:
        cursor = self._connection.execute(sql)
        names = [description[0] for description in cursor.description or []]
        return [dict(zip(names, map(_json, row), strict=True)) for row in cursor.fetchall()]

    def plan(self, table: str, question: str, language: str = "") -> MetricQuery:
        return self._analysis(table, question, language).query()

    def ask(self, table: str, question: str, language: str = "") -> Facts:
        query = self.plan(table, question, language)
        return facts_of(query, self.rows(query_sql(query)))

    def _analysis(self, table: str, question: str, language: str) -> Analysis:
        chinese = any("\u4e00" <= character <= "\u9fff" for character in question)
        spoken = language or ("zh" if chinese else "en")
        analysis = Analysis(question, tables_of(self.profile(table)), spoken)
        while (lookup := analysis.lookup()) is not None:
            analysis.learn(lookup, self.rows(lookup.sql))
        return analysis

    def _column(self, table: str, name: str, kind: str) -> dict[str, JsonValue]:
        quoted = '"' + name.replace('"', '""') + '"'
        nulls, distinct, low, high = self._one(
            f"SELECT COUNT(*) - COUNT({quoted}), COUNT(DISTINCT {quoted}), MIN({quoted}), "
            f'MAX({quoted}) FROM "{table}"'
        )
        column: dict[str, JsonValue] = {
            "name": name, "type": _TYPES.get(kind, "number"), "null_count": nulls,
            "distinct_count": distinct, "min": _json(low), "max": _json(high),
        }  # fmt: skip
        if column["type"] in ("text", "boolean") and distinct <= 50:
            found = self._connection.execute(
                f'SELECT {quoted} FROM "{table}" WHERE {quoted} IS NOT NULL GROUP BY 1 '
                f"ORDER BY COUNT(*) DESC, 1"
            ).fetchall()
            column["values"] = [str(row[0]) for row in found]
        return column

    def _one(self, sql: str) -> tuple[Any, ...]:
        return self._connection.execute(sql).fetchall()[0]


def _json(value: object) -> JsonValue:
    """Return a value as the wire brings it, which knows no whole numbers."""
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if value is None or isinstance(value, bool | float | str):
        return value
    return str(value)
