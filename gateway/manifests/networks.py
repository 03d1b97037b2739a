"""Tells which pods NetworkPolicies let reach which, as the network of the cluster would."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any

from gateway.manifests.documents import Document, at, items, texts
from gateway.manifests.labels import namespace_labels, namespace_of, pod_labels, selects
from gateway.manifests.selectors import container_ports

_INGRESS, _EGRESS = "Ingress", "Egress"
_TCP = "TCP"


@dataclass(frozen=True, slots=True)
class Networks:
    """Judges connections by the policies of a network; blocks of addresses stand for no pod."""

    policies: Sequence[Document]
    namespaces: Sequence[Document]

    def lets_in(self, caller: Document | None, callee: Document, port: int) -> bool:
        """Tell whether a pod may be reached; a caller of None is any pod beside it."""
        rules = self._rules(callee, _INGRESS, "ingress")
        return rules is None or any(
            _port(rule, port, _TCP, callee) and self._peer(rule, "from", caller, callee)
            for rule in rules
        )

    def lets_out(self, caller: Document, callee: Document, port: int) -> bool:
        """Tell whether a pod may reach another."""
        rules = self._rules(caller, _EGRESS, "egress")
        return rules is None or any(
            _port(rule, port, _TCP, callee) and self._peer(rule, "to", callee, caller)
            for rule in rules
        )

    def lets_out_to(self, caller: Document, block: str, port: int) -> bool:
        """Tell whether a pod may reach an address, written as the block of it (`10.1.2.3/32`)."""
        rules = self._rules(caller, _EGRESS, "egress")
        return rules is None or any(
            _port(rule, port, _TCP, None) and _holds(rule, ip_network(block)) for rule in rules
        )

    def lets_out_anywhere(self, caller: Document, port: int, protocol: str) -> bool:
        """Tell whether a pod may reach somebody at a port."""
        rules = self._rules(caller, _EGRESS, "egress")
        return rules is None or any(_port(rule, port, protocol, None) for rule in rules)

    def _rules(self, pods: Document, kind: str, key: str) -> list[Mapping[str, Any]] | None:
        """Return the rules that hold for pods in a direction; None when everything is let."""
        chosen = [
            policy
            for policy in self.policies
            if namespace_of(policy) == namespace_of(pods)
            and selects(policy.at("spec", "podSelector"), pod_labels(pods))
            and kind in _directions(policy)
        ]
        if not chosen:
            return None
        return [rule for policy in chosen for rule in items(policy.at("spec"), key)]

    def _peer(
        self, rule: Mapping[str, Any], key: str, other: Document | None, own: Document
    ) -> bool:
        peers = items(rule, key)
        return not peers or any(self._is(peer, other, own) for peer in peers)

    def _is(self, peer: Mapping[str, Any], other: Document | None, own: Document) -> bool:
        if "ipBlock" in peer:
            return False
        namespace = namespace_of(own if other is None else other)
        chosen, pods = peer.get("namespaceSelector"), peer.get("podSelector")
        beside = namespace == namespace_of(own)
        if not (
            beside
            if chosen is None
            else selects(chosen, namespace_labels(namespace, self.namespaces))
        ):
            return False
        return pods is None or selects(pods, {} if other is None else pod_labels(other))


def _directions(policy: Document) -> Sequence[str]:
    said = texts(policy.body, "spec", "policyTypes")
    if said:
        return said
    return [_INGRESS, *([_EGRESS] if policy.at("spec", "egress") else [])]


def _holds(rule: Mapping[str, Any], wanted: IPv4Network | IPv6Network) -> bool:
    peers = items(rule, "to")
    return not peers or any(
        _covers(at(peer, "ipBlock", "cidr"), wanted)
        and not any(_covers(each, wanted) for each in texts(peer, "ipBlock", "except"))
        for peer in peers
    )


def _covers(block: Any, wanted: IPv4Network | IPv6Network) -> bool:
    try:
        return wanted.network_address in ip_network(str(block), strict=False)
    except ValueError:
        return False  # No block, or one that the cluster refuses.


def _port(rule: Mapping[str, Any], number: int, protocol: str, pods: Document | None) -> bool:
    ports = items(rule, "ports")
    return not ports or any(
        port.get("protocol", _TCP) == protocol and number in _numbers(port, pods) for port in ports
    )


def _numbers(port: Mapping[str, Any], pods: Document | None) -> Sequence[int]:
    first = port.get("port")
    if isinstance(first, str):
        return list(_named(first, pods))
    if not isinstance(first, int):
        return range(1, 65536)
    last = at(port, "endPort")
    return range(first, (last if isinstance(last, int) else first) + 1)


def _named(name: str, pods: Document | None) -> Iterator[int]:
    for port in container_ports(pods) if pods is not None else ():
        if port.get("name") == name and isinstance(port.get("containerPort"), int):
            yield port["containerPort"]
