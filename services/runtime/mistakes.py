"""Turns what pydantic finds wrong with a section into what its user is to write instead."""

from collections.abc import Iterable, Mapping
from dataclasses import is_dataclass
from enum import Enum
from typing import Any, Literal, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from services.runtime.ranges import declared_bounds, number_advice
from services.runtime.setting_text import SettingError, named, nearest, refusal

_NUMBERS = frozenset(
    {
        "int_type",
        "int_parsing",
        "int_from_float",
        "int_parsing_size",
        "float_type",
        "float_parsing",
        "finite_number",
        "greater_than",
        "greater_than_equal",
        "less_than",
        "less_than_equal",
    }
)
_LISTS = frozenset({"tuple_type", "list_type", "set_type", "frozen_set_type"})
_NO_TABLE = frozenset({"model_type", "dataclass_type", "model_attributes_type", "dict_type"})
_WORDS = {
    "bool_type": "write true or false",
    "bool_parsing": "write true or false",
    "string_type": 'write a text in quotes, such as "a"',
    "path_type": "write a path in quotes",
    "bytes_type": "write a text in quotes",
}


def unknown(path: tuple[str, ...], known: Iterable[str]) -> str:
    """Return the refusal of a key that does not exist, with the one that is meant."""
    return f"{named(path)} is not a setting{nearest(path[-1], known)}"


def truth_for_number(path: tuple[str, ...], kind: type[Any], table: Mapping[str, Any]) -> str:
    """Return why a table is refused that says true or false of a number; empty if it does not.

    Pydantic takes them for 1 and 0, and nobody who writes them means that.

    Args:
        path: the section and the tables in it.
        kind: the model or the dataclass that declares the table.
        table: what was written.
    """
    for key, annotation in _annotations(kind).items():
        value = table.get(key)
        if isinstance(value, Mapping) and _is_table(annotation):
            if problem := truth_for_number((*path, key), annotation, value):
                return problem
        elif isinstance(value, bool) and _is_number(annotation):
            return refusal((*path, key), value, _number(kind, key, annotation))
    return ""


def describe(section: str, kind: type[Any], error: ValidationError) -> str:
    """Return what is wrong with a section, as its user has written it.

    Args:
        section: what stands in its brackets.
        kind: the model or the dataclass that declares it.
        error: what pydantic has found; the first of it is told.
    """
    problem = error.errors(include_url=False)[0]
    table, tables, rest = _table_at(kind, problem)
    path = (section, *tables)
    cause = problem.get("ctx", {}).get("error")
    if isinstance(cause, SettingError):
        return refusal((*path, cause.key), cause.value, cause.advice, item=cause.item)
    if not rest:
        return f"[{'.'.join(path)}] {_told(problem)}"
    key = str(rest[0])
    if problem["type"] == "extra_forbidden":
        return unknown((*path, key), _annotations(table))
    advice = _advice(table, key, problem)
    # What is deeper than the setting is an item of it.
    return refusal((*path, key), problem["input"], advice, item=len(rest) > 1)


def _table_at(
    kind: type[Any], problem: ErrorDetails
) -> tuple[type[Any], tuple[str, ...], tuple[int | str, ...]]:
    """Return the table that a problem is in, its path, and where in it."""
    loc, tables = problem["loc"], list[str]()
    # Of a value that should be a table and is none, the table around it knows more.
    whole = loc[:-1] if problem["type"] in _NO_TABLE else loc
    for part in whole:
        inner = _annotations(kind).get(str(part))
        if inner is None or not _is_table(inner):
            break
        kind = inner
        tables.append(str(part))
    return kind, tuple(tables), loc[len(tables) :]


def _is_table(kind: Any) -> bool:
    return isinstance(kind, type) and (is_dataclass(kind) or issubclass(kind, BaseModel))


def _annotations(kind: type[Any]) -> Mapping[str, Any]:
    if issubclass(kind, BaseModel):
        return {name: field.annotation for name, field in kind.model_fields.items()}
    return get_type_hints(kind)


def _bounds(kind: Any, key: str) -> Iterable[Any]:
    if issubclass(kind, BaseModel):
        return list(kind.model_fields[key].metadata)
    return declared_bounds(kind).get(key, [])


def _advice(kind: type[Any], key: str, problem: ErrorDetails) -> str:
    found, annotation = problem["type"], _annotations(kind).get(key)
    choices = list(_choices(annotation))
    if choices and found in ("literal_error", "enum", "string_pattern_mismatch"):
        near = nearest(str(problem["input"]), choices)
        return f"write one of {', '.join(choices)}" + (near if "did you mean" in near else "")
    if found in _NUMBERS:
        return _number(kind, key, annotation)
    if found in _LISTS:
        return 'write a list such as ["a", "b"], or a,b in the environment'
    if found in _NO_TABLE:
        return "write a table"
    return _WORDS.get(found) or _told(problem)


def _is_number(annotation: Any) -> bool:
    return any(kind in (int, float) for kind in (annotation, *get_args(annotation)))


def _number(kind: type[Any], key: str, annotation: Any) -> str:
    return number_advice(_bounds(kind, key), whole=int in (annotation, *get_args(annotation)))


def _choices(annotation: Any) -> Iterable[str]:
    """Yield the words that a setting, or an item of it, may be."""
    if get_origin(annotation) is Literal:
        yield from map(str, get_args(annotation))
    elif isinstance(annotation, type) and issubclass(annotation, Enum):
        yield from (str(each.value) for each in annotation)
    else:
        for inner in get_args(annotation):
            yield from _choices(inner)


def _told(problem: ErrorDetails) -> str:
    """Return what a check of ours has said; what pydantic says itself is clear as well."""
    return problem["msg"].removeprefix("Value error, ")
