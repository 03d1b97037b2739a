"""Tests the commands that look at manifests: each is run once, with several errors planted."""

import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from gateway.manifests.documents import read_manifests
from gateway.manifests.patches import patch_findings
from k8s.validation import dockerfile
from k8s.validation.commands import CommandError, installed, run
from k8s.validation.policies import WAIVED, failed
from k8s.validation.rendering import K8S, Rendered, overlays, render
from tests.making import commands
from tests.requirements import requirement

pytestmark = requirement("cluster:validated")

OPEN_POD = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: open, namespace: sixhop}
spec:
  selector: {matchLabels: {app: open}}
  template:
    metadata: {labels: {app: open}}
    spec:
      hostNetwork: true
      containers:
        - name: app
          image: sixhop:latest
          securityContext: {privileged: true}
"""
OPEN_POD_CHECKS = {
    "CKV_K8S_8": "no liveness probe",
    "CKV_K8S_9": "no readiness probe",
    "CKV_K8S_13": "no limit of memory",
    "CKV_K8S_14": "a tag that moves",
    "CKV_K8S_16": "privileged",
    "CKV_K8S_19": "the network of its node",
    "CKV_K8S_22": "a file system to write to",
    "CKV_K8S_31": "no seccomp",
    "CKV_K8S_38": "a token for the API server",
    "CKV_K8S_40": "a user that the node may have",
}


def test_checkov_finds_what_is_open_and_every_waiver_is_needed() -> None:
    shipped = [render(overlay) for overlay in overlays()]
    planted = Rendered(name="planted", text=OPEN_POD, documents=(), findings=())

    found = Counter((each.overlay, each.check) for each in failed([*shipped, planted]))

    assert {check for overlay, check in found if overlay == "planted"} >= set(OPEN_POD_CHECKS)
    needed = {(overlay, check) for overlay, check in found if overlay != "planted"}
    waived = {(overlay, check) for overlay, checks in WAIVED.items() for check in checks}
    assert needed == waived
    assert all(reason for checks in WAIVED.values() for reason in checks.values())


def test_hadolint_finds_what_is_not_built_again_the_same(tmp_path: Path) -> None:
    file = tmp_path / "Dockerfile"
    file.write_text("FROM python\nRUN apt-get install -y curl\nRUN cd /tmp\n", encoding="utf-8")

    found = "\n".join(dockerfile.findings(file))

    assert set(re.findall(r"DL\d+", found)) >= {"DL3006", "DL3008", "DL3003"}
    assert f"{file}:2: " in found


def test_kubectl_refuses_what_is_no_kustomization(tmp_path: Path) -> None:
    file = tmp_path / "kustomization.yaml"
    file.write_text("resources: []\nresorces: []\npatches: [{path: gone.yaml}]\n", encoding="utf-8")

    with pytest.raises(CommandError, match="resorces"):
        render(tmp_path)


def test_a_patch_that_hits_nothing_passes_kubectl_and_not_us(tmp_path: Path) -> None:
    ours = tmp_path / "k8s"
    shutil.copytree(K8S, ours, ignore=shutil.ignore_patterns("validation"))
    overlay = ours / "overlays/staging"
    file = overlay / "kustomization.yaml"
    text = file.read_text(encoding="utf-8")
    assert "target: {kind: HorizontalPodAutoscaler}" in text
    file.write_text(
        text.replace(
            "target: {kind: HorizontalPodAutoscaler}", "target: {kind: HorizontalPodScaler}"
        ),
        encoding="utf-8",
    )

    rendered = render(overlay)
    (found,) = patch_findings(read_manifests(ours).documents)

    assert "maxReplicas: 4" not in rendered.text
    assert "HorizontalPodScaler" in found.text
    assert str(file) in found.text


def test_make_check_looks_at_what_the_overlays_make() -> None:
    made = "\n".join(commands("check"))

    assert "python -m k8s.validation" in made
    assert "sixhop k8s render --check" in made


def test_who_is_not_there_is_named() -> None:
    with pytest.raises(CommandError, match="`make check` installs it"):
        run(installed("no-such-command"), [])
