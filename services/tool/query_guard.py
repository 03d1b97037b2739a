"""Refuses every query that is not one read-only statement over known tables.

This is the first of three walls. The second is the database itself, which after loading can open
no file, load no extension and change no setting; the third is a read-only transaction.
"""

import logging
from collections.abc import Collection

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from services.tool.errors import SqlRefusedError
from services.tool.sql_functions import ALLOWED_FUNCTIONS, REFUSED_PREFIXES

DIALECT = "duckdb"

# It warns about each statement that it does not know; those are refused with a reason anyway.
logging.getLogger("sqlglot").setLevel(logging.ERROR)

_STATEMENTS = (exp.DML, exp.DDL, exp.Command, exp.Into, exp.Lock)
_ONE_SELECT = "write one SELECT statement"


def guarded(query: str, table_names: Collection[str]) -> str:
    """Return the query as it was understood, to be executed instead of the text that came.

    Whatever a comment or an odd quote hides from one parser can then not reach another one.

    Args:
        query: SQL in DuckDB's dialect.
        table_names: the only tables that it may read.

    Raises:
        SqlRefusedError: says what is not allowed, and what is.
    """
    try:
        statement = _only_statement(query)
        _check_nodes(statement, table_names)
        return statement.sql(dialect=DIALECT, comments=False)
    except RecursionError:
        raise SqlRefusedError("it is nested too deeply; write it in simpler steps") from None


def _only_statement(query: str) -> exp.Query:
    try:
        parsed = sqlglot.parse(query, dialect=DIALECT)
    except ParseError as error:
        raise SqlRefusedError(f"it is no valid SQL: {_where(error)}") from None
    except SqlglotError as error:
        raise SqlRefusedError(f"it is no valid SQL: {error}") from None
    statements = [statement for statement in parsed if statement is not None]
    if not statements:
        raise SqlRefusedError(f"it is empty; {_ONE_SELECT}")
    if len(statements) > 1:
        raise SqlRefusedError(f"it has {len(statements)} statements; {_ONE_SELECT}")
    statement = statements[0]
    if not isinstance(statement, exp.Query):
        raise SqlRefusedError(f"{_verb(statement, query)} is not allowed; {_ONE_SELECT}")
    return statement


def _check_nodes(statement: exp.Query, table_names: Collection[str]) -> None:
    ctes = list(statement.find_all(exp.CTE))
    readable = {name.casefold() for name in table_names}
    for cte in ctes:
        if not isinstance(cte.this, exp.Query):
            raise SqlRefusedError(f"{_verb(cte.this, '')} is not allowed; {_ONE_SELECT}")
        if not cte.alias.isidentifier():
            raise SqlRefusedError(f"{cte.alias!r} is no plain name for a WITH query")
        readable.add(cte.alias.casefold())
    for node in statement.walk():
        if isinstance(node, _STATEMENTS):
            raise SqlRefusedError(f"{_verb(node, '')} is not allowed; {_ONE_SELECT}")
        if isinstance(node, (exp.Placeholder, exp.Parameter)):
            raise SqlRefusedError("parameters are not allowed; write the values")
        if isinstance(node, exp.Table):
            _check_table(node, readable, table_names)
        elif isinstance(node, exp.Func):
            _check_function(node)


def _check_table(table: exp.Table, readable: Collection[str], table_names: Collection[str]) -> None:
    known = ", ".join(sorted(table_names))
    if isinstance(table.this, exp.Func):
        if not isinstance(table.this, exp.GenerateSeries):
            raise SqlRefusedError(
                f"the table function {_function_name(table.this)} is not allowed; "
                f"the tables are: {known}"
            )
        return
    if table.args.get("db") is not None or table.name.casefold() not in readable:
        name = ".".join(part.name for part in table.parts)
        raise SqlRefusedError(f"there is no table {name!r}; the tables are: {known}")


def _check_function(function: exp.Func) -> None:
    name = _function_name(function)
    known = not isinstance(function, exp.Anonymous) or name in ALLOWED_FUNCTIONS
    if not known or name.startswith(REFUSED_PREFIXES):
        raise SqlRefusedError(
            f"the function {name} is not allowed; use functions of numbers, text and dates"
        )


def _function_name(function: exp.Func) -> str:
    name = function.name if isinstance(function, exp.Anonymous) else function.sql_name()
    return str(name).casefold()


def _verb(node: exp.Expr, query: str) -> str:
    words = query.split(maxsplit=1)
    if isinstance(node, exp.Command):
        return str(node.this).upper()
    if words and words[0].isalpha():
        return words[0].upper()
    return type(node).__name__.upper()


def _where(error: ParseError) -> str:
    if not error.errors:
        return "it cannot be parsed"
    first = error.errors[0]
    place = f" at line {first.get('line')}, column {first.get('col')}"
    return f"{first.get('description', 'cannot be parsed').rstrip('.')}{place}"
