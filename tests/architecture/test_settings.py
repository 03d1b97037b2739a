"""Holds every setting to saying what it means."""

import ast
import importlib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from services.runtime.config import HopSettings
from services.runtime.config_text import field_docs
from services.runtime.policy_settings import PolicySettings
from services.runtime.sections import Section
from tests.architecture.sources import Source, parse, product
from tests.requirements import requirement

MIN_WORDS = 4
"""With fewer words nobody says what is meant, in which unit and why so much."""


def section_classes(source: Source) -> Iterator[str]:
    """Yield the names of the classes of a module that are sections."""
    known = {"Section", "HopSettings"}
    for node in source.tree.body:
        if isinstance(node, ast.ClassDef) and known & {ast.unparse(base) for base in node.bases}:
            yield node.name


def settings() -> dict[str, type[Any]]:
    """Return every kind of section and of table in one, by its name."""
    found: dict[str, type[Any]] = {}
    waiting: list[type[Any]] = [HopSettings, *(field.type for field in fields(PolicySettings))]  # type: ignore[list-item]
    for source in product():
        module = source.name.removesuffix(".py").replace("/", ".")
        names = list(section_classes(source))
        waiting += [getattr(importlib.import_module(module), name) for name in names]
    while waiting:
        kind = waiting.pop()
        if kind.__name__ not in found:
            found[kind.__name__] = kind
            waiting += _tables(kind)
    return found


def _tables(kind: type[Any]) -> Iterator[type[Any]]:
    if is_dataclass(kind):
        inner = [field.type for field in fields(kind)]
    else:
        inner = [field.annotation for field in kind.model_fields.values()]
    for each in inner:
        if isinstance(each, type) and (is_dataclass(each) or issubclass(each, Section)):
            yield each


def undocumented(kind: type[Any]) -> list[str]:
    """Return the fields of a kind that do not say what they mean."""
    return [
        f"{kind.__name__}.{name}"
        for name, doc in field_docs(kind).items()
        if len(doc.split()) < MIN_WORDS
    ]


def test_sections_are_found_in_the_source() -> None:
    source = parse("class A(HopSettings): ...\nclass B(Section): ...\nclass C: ...\n")

    assert list(section_classes(source)) == ["A", "B"]


@requirement("config:every-setting-explained")
def test_every_setting_says_what_it_means_in_which_unit_and_why() -> None:
    found = settings()

    assert {"DeadlineSettings", "ToolSettings", "LlmSettings", "GroupSize", "RetryConfig"} <= set(
        found
    )
    assert [name for kind in found.values() for name in undocumented(kind)] == []


class Careless(Section):
    """Is a section that says too little."""

    length_s: float = 1.0
    """A length."""
    number: int = 3


def test_a_setting_that_says_nothing_is_found() -> None:
    assert undocumented(Careless) == ["Careless.length_s", "Careless.number"]
