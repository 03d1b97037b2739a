"""Holds docs/kubernetes.md to the manifests that it tells of."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from gateway.manifests.rendering.render import SETTINGS
from services.runtime.config import load_config
from tests.requirements import requirement

ROOT = Path(__file__).resolve().parents[4]
TEXT = (ROOT / "docs/kubernetes.md").read_text(encoding="utf-8")
SECRET_KEYS = ("secretKeyRef", "secret")


def secrets(body: Any) -> Iterator[str]:
    """Yield the names of all Secrets that an object refers to, at any depth."""
    if isinstance(body, list):
        for each in body:
            yield from secrets(each)
    if isinstance(body, dict):
        for key, value in body.items():
            if key in SECRET_KEYS and isinstance(value, dict):
                yield value.get("secretName") or value["name"]
            elif key == "certificateRefs":
                yield from (each["name"] for each in value)
            else:
                yield from secrets(value)


@requirement("cluster:document")
def test_every_secret_that_a_pod_wants_is_made() -> None:
    wanted = {
        name
        for file in (ROOT / "k8s").rglob("*.yaml")
        for body in yaml.safe_load_all(file.read_text(encoding="utf-8"))
        for name in secrets(body)
    }

    made = set(re.findall(r"create secret (?:generic|tls) (\S+)", TEXT))
    assert wanted == made


@requirement("cluster:document")
def test_every_file_that_is_named_is_there() -> None:
    named = {path.rstrip("/.") for path in re.findall(r"k8s/[\w./-]+|docs/[\w.-]+\.md", TEXT)}

    places = {path for path in named if not {"HOP", "domain-NAME"} & set(path.split("/"))}
    assert len(places) > 8
    assert {path for path in places if not (ROOT / path).exists()} == set()


@requirement("cluster:document")
def test_the_numbers_that_it_tells_are_those_of_the_manifests() -> None:
    config = load_config(ROOT / "k8s" / SETTINGS, {})
    pods = yaml.safe_load_all((ROOT / "k8s/base/gateway/generated.yaml").read_text())
    pod = next(iter(pods))["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    ready = container["readinessProbe"]

    drain_s = config.hop("gateway").drain_timeout_s
    assert f"({drain_s:g} s)" in TEXT
    assert f"`preStop` sleeps {container['lifecycle']['preStop']['sleep']['seconds']} s" in TEXT
    # The last answer that was missed is noticed when its time is up.
    out_s = ready["periodSeconds"] * ready["failureThreshold"] + ready["timeoutSeconds"]
    assert f"A pod that hangs is out after {out_s} s." in TEXT
