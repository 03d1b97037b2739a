"""Tests that what a kustomization means to change and does not is found."""

from pathlib import Path

import pytest

from tests.requirements import requirement
from tests.unit.gateway.manifests.breaking import SUITE, examined

BASE = """\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: sixhop
namePrefix: my-
labels: [{pairs: {part-of: sixhop}, includeSelectors: false}]
resources: [suite.yaml]
configMapGenerator: [{name: extra, literals: [a=b]}]
"""
COMPONENT = """\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
patches:
  - target: {kind: Deployment, name: my-routing}
    patch: |
      - {op: add, path: /spec/template/spec/containers/1/image, value: sixhop:1}
"""
OVERLAY = """\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [../base]
components: [../component]
patches:
  - target: {group: apps, version: v1, kind: Deploy.*, name: .*routing, namespace: sixhop}
    path: patch.yaml
  - target: {kind: Deployment, labelSelector: "part-of=sixhop,tier!=x,!gone"}
    path: patch.yaml
  - target: {kind: ConfigMap, name: extra}
    path: annotate.yaml
images: [{name: sixhop, newName: registry.example.com/sixhop}]
replacements:
  - source: {kind: Service, name: my-routing, fieldPath: metadata.name}
    targets: [{select: {kind: Deployment, name: my-routing}, fieldPaths: [metadata.name]}]
"""
PATCH = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: any, annotations: {a: b}}\n"


def laid_out(folder: Path, overlay: str = OVERLAY) -> Path:
    """Write the three folders; return the one that holds them."""
    for name, files in {
        "base": {"kustomization.yaml": BASE},
        "component": {"kustomization.yaml": COMPONENT},
        "overlay": {
            "kustomization.yaml": overlay,
            "patch.yaml": PATCH,
            "annotate.yaml": "- {op: add, path: /metadata/annotations, value: {a: b}}\n",
        },
    }.items():
        (folder / name).mkdir()
        for file, text in files.items():
            (folder / name / file).write_text(text, encoding="utf-8")
    return folder


def missed(folder: Path) -> list[str]:
    """Return the texts of what is meant to change and does not."""
    (folder / "base/suite.yaml").write_text(SUITE, encoding="utf-8")
    return [
        finding.text
        for finding in examined(folder, folder).findings
        if finding.rule == "patches-hit"
    ]


@requirement("check:kustomize")
def test_patches_that_hit_are_fine(tmp_path: Path) -> None:
    assert missed(laid_out(tmp_path)) == []


@requirement("check:kustomize")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("name: .*routing", "name: rooting"), "target of patch 1 (group apps"),
        (("Deploy.*", "Deploy"), "patch 1"),
        (("group: apps", "group: batch"), "patch 1"),
        (("version: v1", "version: v2"), "patch 1"),
        (("namespace: sixhop", "namespace: other"), "patch 1"),
        (("part-of=sixhop", "part-of=x"), "patch 2"),
        (("tier!=x", "part-of!=sixhop"), "patch 2"),
        (("!gone", "!part-of"), "patch 2"),
        (("!gone", "gone"), "patch 2"),
        (("name: extra", "name: other"), "patch 3"),
        (("name: sixhop, newName", "name: sixhob, newName"), "images names sixhob"),
        (("my-routing}, fieldPaths", "routin}, fieldPaths"), "replacement 1"),
    ],
)
def test_what_changes_nothing_is_told(change: tuple[str, str], words: str, tmp_path: Path) -> None:
    assert OVERLAY.count(change[0]) == 1

    texts = missed(laid_out(tmp_path, OVERLAY.replace(*change)))

    assert len(texts) == 1
    assert words in texts[0]
    assert str(tmp_path / "overlay") in texts[0]


@requirement("check:kustomize")
def test_a_component_is_judged_by_what_reaches_it(tmp_path: Path) -> None:
    folder = laid_out(tmp_path)
    component = folder / "component/kustomization.yaml"
    component.write_text(COMPONENT.replace("my-routing", "my-domain"), encoding="utf-8")

    texts = missed(folder)

    assert any("component" in text and "patch 1" in text for text in texts)


@requirement("check:kustomize")
def test_of_what_cannot_be_followed_nothing_is_said(tmp_path: Path) -> None:
    unknown = OVERLAY.replace("[../base]", "[../base, https://example.com/more]")

    assert missed(laid_out(tmp_path, unknown.replace(".*routing", "rooting"))) == []
