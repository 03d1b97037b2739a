"""Translates AuthorizationPolicies as istiod does: into Envoy's filter for roles (RBAC)."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.e2e.mesh.translation import Config, Object, UntranslatedError, known

SPIFFE = "spiffe://"
RBAC = "envoy.filters.http.rbac"


def role_filter(
    policies: Sequence[Object], labels: Mapping[str, str], ports: Mapping[str, int]
) -> Config | None:
    """Return the filter that the pods with some labels have; None where everybody may call.

    Args:
        policies: the AuthorizationPolicies of the namespace.
        labels: the labels of the pods.
        ports: where the ports of the container are on this machine.
    """
    own = [policy for policy in policies if _selects(policy, labels)]
    if not own:
        return None
    rules: Config = {}
    for policy in own:
        name, spec = policy["metadata"]["name"], policy.get("spec") or {}
        where = f"AuthorizationPolicy {name}"
        known(spec, ("selector", "action", "rules"), where)
        if spec.get("action", "ALLOW") != "ALLOW":
            raise UntranslatedError(f"{where}: action {spec['action']}")
        for number, rule in enumerate(spec.get("rules") or ()):
            rules[f"policy[{name}]-rule[{number}]"] = _rule(rule, ports, where)
    return {
        "name": RBAC,
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC",
            # With rules of nobody it lets nobody in: that is what `spec: {}` is for.
            "rules": {"action": "ALLOW", "policies": rules},
        },
    }


def _selects(policy: Object, labels: Mapping[str, str]) -> bool:
    spec = policy.get("spec") or {}
    wanted = known(spec.get("selector"), ("matchLabels",), "selector").get("matchLabels") or {}
    return all(labels.get(key) == value for key, value in wanted.items())


def _rule(rule: Any, ports: Mapping[str, int], where: str) -> Config:
    said = known(rule, ("from", "to"), f"{where} rule")
    sources = [
        _source(known(each, ("source",), where).get("source"), where)
        for each in said.get("from") or ()
    ]
    operations = [
        _operation(known(each, ("operation",), where).get("operation"), ports, where)
        for each in said.get("to") or ()
    ]
    return {
        "principals": sources or [{"any": True}],
        "permissions": operations or [{"any": True}],
    }


def _source(source: Any, where: str) -> Config:
    said = known(source, ("principals", "namespaces"), f"{where} source")
    found = []
    if "principals" in said:
        found.append({"or_ids": {"ids": [_principal(each) for each in said["principals"]]}})
    if "namespaces" in said:
        regexes = [f".*/ns/{name}/.*" for name in said["namespaces"]]
        ids = [_authenticated({"safe_regex": {"regex": each}}) for each in regexes]
        found.append({"or_ids": {"ids": ids}})
    return {"and_ids": {"ids": found}} if found else {"any": True}


def _principal(text: str) -> Config:
    if text == "*":
        return _authenticated({"safe_regex": {"regex": ".+"}})
    if text.startswith("*"):
        return _authenticated({"suffix": text[1:]})
    if text.endswith("*"):
        return _authenticated({"prefix": SPIFFE + text[:-1]})
    return _authenticated({"exact": SPIFFE + text})


def _authenticated(matcher: Config) -> Config:
    return {"authenticated": {"principal_name": matcher}}


def _operation(operation: Any, ports: Mapping[str, int], where: str) -> Config:
    said = known(operation, ("ports", "paths", "notPaths"), f"{where} operation")
    found: list[Config] = []
    if "ports" in said:
        # A port that is not served here matches nothing, as port 0 does.
        there = [{"destination_port": ports.get(str(port), 0)} for port in said["ports"]]
        found.append({"or_rules": {"rules": there}})
    if "paths" in said:
        found.append({"or_rules": {"rules": [_path(each) for each in said["paths"]]}})
    if "notPaths" in said:
        others = {"or_rules": {"rules": [_path(each) for each in said["notPaths"]]}}
        found.append({"not_rule": others})
    return {"and_rules": {"rules": found}} if found else {"any": True}


def _path(text: str) -> Config:
    if text == "*":
        matcher: Config = {"safe_regex": {"regex": ".+"}}
    elif text.endswith("*"):
        matcher = {"prefix": text[:-1]}
    elif text.startswith("*"):
        matcher = {"suffix": text[1:]}
    else:
        matcher = {"exact": text}
    return {"url_path": {"path": matcher}}


def require_mutual_tls(authentications: Sequence[Object]) -> None:
    """Make sure that whoever is not in the mesh is not heard, as the sidecars here have it.

    Raises:
        UntranslatedError: a PeerAuthentication says something else, or there is none.
    """
    if not authentications:
        raise UntranslatedError("without a PeerAuthentication sidecars take plain text as well")
    for each in authentications:
        where = f"PeerAuthentication {each['metadata']['name']}"
        said = known(each["spec"], ("mtls",), where)
        if known(said.get("mtls"), ("mode",), where).get("mode") != "STRICT":
            raise UntranslatedError(f"{where}: mtls {said.get('mtls')}")
