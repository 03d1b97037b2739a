"""Turns the tables of a configuration into typed sections, or says what is wrong with them."""

from collections.abc import Mapping
from dataclasses import MISSING, Field, asdict, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from services.runtime.mistakes import describe, truth_for_number, unknown
from services.runtime.setting_text import nearest as nearest  # callers find it here as well


class ConfigError(Exception):
    """Refuses a configuration; names the setting, the problem and a fix."""


class MissingFileError(ConfigError):
    """Says that a setting names what is not on this machine; it may be on another."""


class Section(BaseModel):
    """Is the base of every section: frozen, and unknown keys are errors."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False
    )


NO_FOLDER = "no_folder"
"""The kind of a problem with a folder that does not exist."""
PolicyT = TypeVar("PolicyT")
SectionT = TypeVar("SectionT", bound=Section)


def read_section(name: str, kind: type[SectionT], table: Any) -> SectionT:
    """Return a section as its model declares it.

    Raises:
        ConfigError: a key is unknown or a value does not fit.
    """
    if not isinstance(table, dict):
        raise ConfigError(f"[{name}] must be a table")
    _refuse_truths(name, kind, table)
    try:
        return kind.model_validate(table)
    except ValidationError as error:
        missing = error.errors(include_url=False)[0]["type"] == NO_FOLDER
        refuse = MissingFileError if missing else ConfigError
        raise refuse(describe(name, kind, error)) from None


def read_policy(name: str, kind: type[PolicyT], table: Any) -> PolicyT:
    """Return the section of a policy as its dataclass declares it.

    Raises:
        ConfigError: a key is unknown or a value does not fit.
    """
    values = _complete((name,), kind, table)
    _refuse_truths(name, kind, values)
    try:
        return cast(PolicyT, _adapter(cast(Any, kind)).validate_python(values))
    except ValidationError as error:
        raise ConfigError(describe(name, kind, error)) from None


@cache
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    # To make one takes pydantic some milliseconds, and every section is read more than once.
    return TypeAdapter(kind)


def split_names(value: Any) -> Any:
    """Return the parts of a text with commas; everything else as it is."""
    # The environment knows text only.
    if not isinstance(value, str):
        return value
    return [part.strip() for part in value.split(",") if part.strip()]


def default_of(field: "Field[Any]") -> Any:
    """Return what a field of a policy has when nobody sets it."""
    if field.default_factory is not MISSING:
        return field.default_factory()
    return field.default


def _refuse_truths(name: str, kind: type[Any], table: Mapping[str, Any]) -> None:
    if problem := truth_for_number((name,), kind, table):
        raise ConfigError(problem)


def _complete(path: tuple[str, ...], kind: type[Any], table: Any) -> dict[str, Any]:
    """Return the values of a table; of a table in it, with the defaults of what it leaves out."""
    if not isinstance(table, Mapping):
        raise ConfigError(f"[{'.'.join(path)}] must be a table")
    # pydantic reads dataclasses, but lets keys pass that they do not have.
    known = {field.name: field for field in fields(cast(Any, kind))}
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in known:
            raise ConfigError(unknown((*path, key), known))
        field = known[key]
        if is_dataclass(field.type):
            inner = cast(type[Any], field.type)
            values[key] = asdict(default_of(field)) | _complete((*path, key), inner, value)
        else:
            values[key] = split_names(value) if "frozenset" in str(field.type) else value
    return values
