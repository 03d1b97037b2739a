"""Holds the reasons that a configuration may name to those that the product gives."""

import ast
from collections.abc import Iterator

from services.runtime.errors import REASONS
from tests.architecture.sources import Source, parse, product


def reasons(source: Source) -> Iterator[str]:
    """Yield the reasons that a module gives to an `Origin`, itself or by an enum of them."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Origin":
            for keyword in node.keywords:
                if keyword.arg == "reason" and isinstance(keyword.value, ast.Constant):
                    yield str(keyword.value.value)
        if isinstance(node, ast.ClassDef) and node.name == "Reason":
            for line in node.body:
                if isinstance(line, ast.Assign) and isinstance(line.value, ast.Constant):
                    yield str(line.value.value)


def test_reasons_are_found_in_the_source() -> None:
    text = "class Reason(StrEnum):\n    A = 'A'\nOrigin(x, reason='B')\nOrigin(x, reason=y)\n"

    assert sorted(reasons(parse(text))) == ["A", "B"]


def test_every_reason_that_is_given_may_stand_in_a_configuration() -> None:
    # Why a breaker is in its state is no reason of an error.
    given = {
        reason
        for source in product()
        if source.name != "services/runtime/circuit.py"
        for reason in reasons(source)
    }

    assert {"NO_ANSWER", "PROVIDER_ERROR"} <= given
    assert given <= REASONS, "add what is new to the reasons in services/runtime/errors.py"
