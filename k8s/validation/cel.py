"""Evaluates the rules that a CustomResourceDefinition holds its values to, by cel-python."""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import celpy
from celpy import celtypes
from celpy.adapter import json_to_cel
from celpy.evaluation import CELEvalError, CELFunction

RULES = "x-kubernetes-validations"


class CelRules:
    """Evaluates rules, each translated once."""

    def __init__(self) -> None:
        self._environment = celpy.Environment()
        self._programs: dict[str, celpy.Runner] = {}

    def broken(
        self, schema: Mapping[str, Any], value: Any, path: tuple[str | int, ...] = ()
    ) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """Yield where a value breaks a rule of its schema, at any depth, and which.

        A rule that cannot be evaluated is broken, as for an API server: of `5sec` nobody can say
        whether it is longer than a millisecond.
        """
        for rule in schema.get(RULES, ()):
            try:
                holds = bool(self._program(rule["rule"]).evaluate({"self": json_to_cel(value)}))
                said = "" if holds else str(rule.get("message") or rule["rule"])
            except CELEvalError as error:
                said = f"{value!r} cannot be held to {rule['rule']}: {error.args[0]}"
            if said:
                yield path, said
        if isinstance(value, Mapping):
            named, other = schema.get("properties", {}), schema.get("additionalProperties")
            for key, each in value.items():
                inner = named.get(key, other)
                if isinstance(inner, Mapping):
                    yield from self.broken(inner, each, (*path, key))
        elif isinstance(value, list) and isinstance(schema.get("items"), Mapping):
            for number, each in enumerate(value):
                yield from self.broken(schema["items"], each, (*path, number))

    def _program(self, rule: str) -> celpy.Runner:
        if rule not in self._programs:
            tree = self._environment.compile(rule)
            self._programs[rule] = self._environment.program(tree, functions=dict(_KUBERNETES))
        return self._programs[rule]


def _substring(text: str, start: int, end: int) -> celtypes.StringType:
    return celtypes.StringType(str(text)[int(start) : int(end)])


def _url(text: str) -> celtypes.StringType:
    return celtypes.StringType(text)


def _scheme(text: str) -> celtypes.StringType:
    return celtypes.StringType(urlsplit(str(text)).scheme)


def _is_url(text: str) -> celtypes.BoolType:
    return celtypes.BoolType(bool(urlsplit(str(text)).scheme))


_KUBERNETES: Mapping[str, CELFunction] = {
    "substring": _substring,
    "url": _url,
    "getScheme": _scheme,
    "isURL": _is_url,
}
"""What Kubernetes adds to the language, as far as Istio uses it."""
