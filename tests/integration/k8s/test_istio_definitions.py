"""Tests the check by definitions with some of our own, wherever Istio's are."""

from pathlib import Path

import pytest

from gateway.manifests.documents import read_text
from k8s.validation.istio_crds import Definitions, read_definitions
from tests.requirements import requirement

pytestmark = requirement("cluster:validated")

DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
spec:
  group: test.istio.io
  names: {kind: Thing}
  versions:
    - name: v1
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              oneOf:
                - not: {anyOf: [{required: [a]}, {required: [b]}]}
                - required: [a]
                - required: [b]
              properties:
                a: {type: string}
                b: {type: string}
                wait:
                  type: string
                  x-kubernetes-validations:
                    - {rule: "duration(self) >= duration('1ms')", message: must be at least 1ms}
                socket:
                  type: string
                  x-kubernetes-validations:
                    - {rule: "self.startsWith('unix://') ? self.substring(7, 8) == '/' : true"}
                page:
                  type: string
                  x-kubernetes-validations:
                    - {rule: "isURL(self) ? url(self).getScheme() in ['https'] : false"}
                parts:
                  type: array
                  items:
                    type: object
                    required: [n]
                    properties: {n: {type: integer, minimum: 1}}
                    x-kubernetes-validations: [{rule: "!has(self.n) || self.n < 10"}]
                named:
                  type: object
                  additionalProperties: {type: object, properties: {n: {type: integer}}}
                open:
                  type: object
                  properties: {a: {}}
                  x-kubernetes-preserve-unknown-fields: true
"""
GOOD = """
apiVersion: test.istio.io/v1
kind: Thing
metadata: {name: x, labels: {a: b}}
spec:
  a: x
  wait: 1.5s
  socket: unix:///x
  page: https://example.com
  parts: [{n: 1}]
  named: {any: {n: 1}}
  open: {b: 1}
"""


@pytest.fixture
def definitions(tmp_path: Path) -> Definitions:
    file = tmp_path / "definitions.yaml"
    file.write_text(DEFINITION, encoding="utf-8")
    return read_definitions(file)


def test_what_is_as_defined_is_fine(definitions: Definitions) -> None:
    assert list(definitions.findings(read_text("x", GOOD).documents)) == []


@pytest.mark.parametrize(
    ("change", "where", "words"),
    [
        (("a: x\n", "a: x\n  c: x\n"), "spec", "'c' was unexpected"),
        (("a: x\n", "a: x\n  b: x\n"), "spec", "valid under each of"),
        (("a: x\n", "a: 1\n"), "spec.a", "is not of type 'string'"),
        (("{n: 1}]", "{n: 0}]"), "spec.parts[0].n", "less than the minimum"),
        (("{n: 1}]", "{n: 1}, {n: 10}]"), "spec.parts[1]", "self.n < 10"),
        (("{n: 1}]", "{m: 1}]"), "spec.parts[0]", "'m' was unexpected"),
        (("any: {n", "any: {m"), "spec.named.any", "'m' was unexpected"),
        (("1.5s", "0s"), "spec.wait", "must be at least 1ms"),
        (("1.5s", "5sec"), "spec.wait", "'5sec' cannot be held to duration"),
        (("unix:///x", "unix://x"), "spec.socket", "substring"),
        (("https:", "http:"), "spec.page", "getScheme"),
        (("labels", "lables"), "metadata", "'lables' was unexpected"),
        (("{a: b}", "{a: 1}"), "metadata.labels.a", "is not of type 'string'"),
        (("/v1", "/v2"), "Thing x", "knows no Thing of test.istio.io/v2"),
    ],
)
def test_what_is_not_is_told_with_its_place(
    change: tuple[str, str], where: str, words: str, definitions: Definitions
) -> None:
    assert GOOD.count(change[0]) == 1

    found = list(definitions.findings(read_text("x", GOOD.replace(*change)).documents))

    assert any(words in text and where in text for text in found)
