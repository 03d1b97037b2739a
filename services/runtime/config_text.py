"""Writes a configuration as TOML whose comments are the settings' own docstrings."""

import ast
import inspect
import json
import sys
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, SecretStr

from services.runtime.config import (
    RUNTIME_SECTIONS,
    Config,
    ConfigError,
    HopSettings,
    load_config,
)
from services.runtime.policy_settings import PolicySettings, policy_settings
from services.runtime.sections import Section, default_of
from services.runtime.tenants import SECTION as TENANTS

WIDTH = 98
EXIT_CONFIG = 2
"""As of every hop; their module is not imported, because it would bring gRPC with it."""
SECRET_WORDS = ("key", "secret", "password", "token", "authorization")
"""A setting with one of these words in its name may hold what nobody should read."""
HIDDEN = "set, and not shown"


def shared_text(config: Config) -> str:
    """Return the sections that every hop reads, with the values that hold.

    Raises:
        ConfigError: the section of a policy cannot be read.
    """
    policies = policy_settings(config)
    shared = (section_text(name, getattr(config, name)) for name in RUNTIME_SECTIONS)
    own = (
        section_text(field.name, getattr(policies, field.name)) for field in fields(PolicySettings)
    )
    return "\n".join([*shared, *own, *_tenant_texts(config)])


def _tenant_texts(config: Config) -> Iterator[str]:
    """Yield the table of each tenant, with the defaults that it does not set filled in."""
    for name, limits in config.tenants.tables().items():
        yield section_text(f"{TENANTS}.{name}", limits)


def own_text(name: str, kind: type[HopSettings], config: Config) -> str:
    """Return the section of one room, with the values that hold.

    Raises:
        ConfigError: the section cannot be read.
    """
    return section_text(name, config.section(name, kind))


def write_own(kinds: Mapping[str, type[HopSettings]], path: Path | None = None) -> int:
    """Write the sections that one room knows to standard output; return the exit code."""
    try:
        config = load_config(path)
        texts = [own_text(name, kind, config) for name, kind in kinds.items()]
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_CONFIG
    sys.stdout.write("\n".join(texts))
    return 0


def section_text(name: str, values: Any) -> str:
    """Return one section and the tables in it.

    Args:
        name: what stands in its brackets.
        values: a section, or the dataclass of a policy.
    """
    kind = type(values)
    return _table_text(name, values, _defaults(kind), inspect.getdoc(kind) or "")


def _table_text(name: str, values: Any, defaults: Mapping[str, Any], doc: str) -> str:
    lines = [*_comment(doc), f"[{name}]"]
    tables: list[str] = []
    docs = field_docs(type(values))
    for key, value in _values(values).items():
        if _is_table(value):
            # What its field says of it tells more than what its kind says of all.
            inner = _table_text(f"{name}.{key}", value, _values(defaults[key]), docs[key])
            tables.append(inner)
            continue
        lines += ["", *_comment(docs[key], _default_note(key, value, defaults[key]))]
        lines.append(_line(key, value))
    return "\n".join([*lines, "", *tables])


def field_docs(kind: type[Any]) -> Mapping[str, str]:
    """Return the docstring under each field of a section or dataclass, by the field's name.

    Python keeps none of them, so the source tells; fields of its base classes come first.
    """
    found: dict[str, str] = {}
    for owner in reversed(kind.__mro__):
        if owner in (object, BaseModel, Section) or owner.__module__.startswith("pydantic"):
            continue
        tree = ast.parse(textwrap.dedent(inspect.getsource(owner)))
        body = cast(ast.ClassDef, tree.body[0]).body
        for field, following in zip(body, [*body[1:], None], strict=True):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                found[field.target.id] = _docstring(following)
    return found


def _docstring(node: ast.stmt | None) -> str:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        value = node.value.value
        return inspect.cleandoc(value) if isinstance(value, str) else ""
    return ""


def _is_table(value: Any) -> bool:
    return isinstance(value, BaseModel) or is_dataclass(value)


def _values(values: Any) -> dict[str, Any]:
    if isinstance(values, BaseModel):
        return {name: getattr(values, name) for name in type(values).model_fields}
    return {field.name: getattr(values, field.name) for field in fields(values)}


def _defaults(kind: type[Any]) -> dict[str, Any]:
    if issubclass(kind, BaseModel):
        return {
            name: field.get_default(call_default_factory=True)
            for name, field in kind.model_fields.items()
        }
    return {field.name: default_of(field) for field in fields(kind)}


def _default_note(key: str, value: Any, default: Any) -> str:
    if value == default or _is_secret(key, value) or not _is_plain(default):
        return ""
    return f"Default: {_toml(default)}"


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float | Path | tuple | frozenset | Enum)


def _line(key: str, value: Any) -> str:
    if value is None:
        return f"# {key} ="
    if _is_secret(key, value):
        hidden = value.get_secret_value() if isinstance(value, SecretStr) else value
        return f"# {key} = {HIDDEN}" if hidden else f'# {key} = ""'
    return f"{key} = {_toml(value)}"


def _is_secret(key: str, value: Any) -> bool:
    if isinstance(value, SecretStr):
        return True
    return isinstance(value, str) and any(key.lower().endswith(word) for word in SECRET_WORDS)


def _toml(value: Any) -> str:
    """Return a value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Enum | Path):
        return _text(str(value))
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, frozenset):
        return _list(sorted(map(str, value)))
    if isinstance(value, tuple | list):
        return _list(value)
    if isinstance(value, Mapping):
        # As JSON in a text, because TOML has no null.
        return _text(json.dumps(_hidden(value), ensure_ascii=False))
    return _text(str(value))


def _hidden(value: Any, key: str = "") -> Any:
    """Return JSON without what nobody should read."""
    if isinstance(value, Mapping):
        return {str(k): _hidden(v, str(k)) for k, v in value.items()}
    if isinstance(value, list):
        return [_hidden(each, key) for each in value]
    return HIDDEN if value and _is_secret(key, value) else value


def _text(value: str) -> str:
    # JSON escapes as TOML does, but for one character that TOML does not take as it is.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _list(values: Any) -> str:
    parts = [_toml(value) for value in values]
    line = f"[{', '.join(parts)}]"
    if len(line) <= WIDTH - 20:
        return line
    return "[\n" + "".join(f"    {part},\n" for part in parts) + "]"


def _comment(*paragraphs: str) -> Iterator[str]:
    for paragraph in paragraphs:
        for line in textwrap.wrap(" ".join(paragraph.split()), WIDTH - 2):
            yield f"# {line}"
