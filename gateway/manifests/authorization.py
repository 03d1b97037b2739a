"""Tells whom Istio's AuthorizationPolicies let call what, as the sidecar of the callee would."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.manifests.documents import Document, items, table, texts
from gateway.manifests.labels import namespace_of, pod_labels, selects
from gateway.manifests.names import account_of
from gateway.manifests.rendering.names import TRUST_DOMAIN

ROOT_NAMESPACE = "istio-system"
"""Policies that lie there hold everywhere."""
_DEFAULT_ACTION = "ALLOW"


@dataclass(frozen=True, slots=True)
class Authorization:
    """Judges calls by the policies of a mesh."""

    policies: Sequence[Document]

    def allows(self, caller: Document | None, callee: Document, path: str, port: int) -> bool:
        """Tell whether a call is let through.

        Args:
            caller: the workload that calls; None is anybody from elsewhere.
            callee: the workload that is called.
            path: the RPC, as a request names it.
            port: the port of the pod that it comes to.
        """
        chosen = [each for each in self.policies if _holds_for(each, callee)]
        denied = (each for each in chosen if _action(each) == "DENY")
        if any(_takes(each, caller, path, port) for each in denied):
            return False
        allowed = [each for each in chosen if _action(each) == _DEFAULT_ACTION]
        return not allowed or any(_takes(each, caller, path, port) for each in allowed)


def _action(policy: Document) -> str:
    return str(policy.at("spec", "action") or _DEFAULT_ACTION)


def _holds_for(policy: Document, callee: Document) -> bool:
    spec = table(policy.body, "spec")
    # Those are held by waypoints and gateways, which the pods of a hop are not.
    if "targetRef" in spec or "targetRefs" in spec:
        return False
    if namespace_of(policy) not in (namespace_of(callee), ROOT_NAMESPACE):
        return False
    return "selector" not in spec or selects(spec["selector"], pod_labels(callee))


def _takes(policy: Document, caller: Document | None, path: str, port: int) -> bool:
    return any(
        _any(items(rule, "from"), "source", _sources(caller))
        and _any(items(rule, "to"), "operation", {"paths": [path], "ports": [str(port)]})
        for rule in items(policy.at("spec"), "rules")
    )


def _any(parts: list[Mapping[str, Any]], key: str, facts: Mapping[str, list[str]]) -> bool:
    """Tell whether one part is met, or there is none to meet."""
    return not parts or any(_meets(table(part, key), facts) for part in parts)


def _meets(part: Mapping[str, Any], facts: Mapping[str, list[str]]) -> bool:
    for name, values in facts.items():
        wanted, unwanted = texts(part, name), texts(part, f"not{name[:1].upper()}{name[1:]}")
        if wanted and not any(_like(value, each) for value in values for each in wanted):
            return False
        if unwanted and any(_like(value, each) for value in values for each in unwanted):
            return False
    return True


def _sources(caller: Document | None) -> dict[str, list[str]]:
    if caller is None:
        return {"principals": [], "namespaces": [], "serviceAccounts": []}
    namespace, account = namespace_of(caller), account_of(caller)
    return {
        "principals": [f"{TRUST_DOMAIN}/ns/{namespace}/sa/{account}"],
        "namespaces": [namespace],
        "serviceAccounts": [account, f"{namespace}/{account}"],
    }


def _like(value: str, text: str) -> bool:
    """Compare as Istio does: exactly, by a beginning, by an end, or that there is anything."""
    if text == "*":
        return bool(value)
    if text.endswith("*"):
        return value.startswith(text[:-1])
    if text.startswith("*"):
        return value.endswith(text[1:])
    return value == text
