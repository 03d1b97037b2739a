"""Lists what tenants, and those who run the gateway for them, are promised; by id."""

from tests.ledger.entry import Requirement

TENANTS: dict[str, Requirement] = {
    "tenants:agents-and-tools": Requirement(
        "A tenant is answered by the agents that it may ask, whether it names one or routing "
        "chooses; tools that it may not use are neither offered nor executed.",
        "issue 5",
    ),
    "tenants:ceilings": Requirement(
        "No call has a higher criticality or a longer deadline than its tenant may have.",
        "issue 5",
    ),
    "tenants:flood": Requirement(
        "However a tenant floods, another one's requests are all admitted.",
        "issue 5",
    ),
    "tenants:health-for-everybody": Requirement(
        "Whether the gateway lives, is ready and how it does is told without a key.",
        "issue 5",
    ),
    "tenants:identified": Requirement(
        "Over HTTP and gRPC a call is its key's or its token's tenant's, whatever it claims; "
        "without a right one it is refused as UNAUTHENTICATED.",
        "design 9",
    ),
    "tenants:key-file": Requirement(
        "Keys are kept as digests in a file that only its owner reads, written as a whole; what "
        "makes no sense there leaves the keys as they were, none at the start, and is told once.",
        "issue 5",
    ),
    "tenants:keys-never-logged": Requirement(
        "No key, no token and no part of one ever stands in a log or an answer.",
        "issue 5",
    ),
    "tenants:keys-shown-once": Requirement(
        "`sixhop key` makes a key and shows it once, lists keys, and revokes them.",
        "issue 5",
    ),
    "tenants:limits-named": Requirement(
        "A refusal names the tenant's limit and when to come back, and whoever does so is let in.",
        "issue 5",
    ),
    "tenants:looked-at-once": Requirement(
        "What a request shows is looked at once, before its body is read and not again after it, "
        "unless the body took a second or the issuer was away.",
        "issue 5",
    ),
    "tenants:loopback-only": Requirement(
        "A gateway that others than its own machine can call refuses to start without keys or "
        "tokens, unless its configuration says that everybody may come in.",
        "issue 5",
    ),
    "tenants:one-way-for-wrong-keys": Requirement(
        "A wrong secret and an id that does not exist take the same way to the same answer: a "
        "digest is made and compared in either case.",
        "design 9",
    ),
    "tenants:own-share": Requirement(
        "No tenant alone takes all started runs or all readers of events: it has a quarter of "
        "each, and a refusal names the setting.",
        "issue 5",
    ),
    "tenants:redis-away": Requirement(
        "While Redis is away each gateway counts for itself, and says so once; nobody is refused "
        "for that.",
        "issue 5",
    ),
    "tenants:revoked-at-once": Requirement(
        "A key that is revoked lets nobody in a second later, without a restart.",
        "issue 5",
    ),
    "tenants:shared-limits": Requirement(
        "Gateways with one Redis hold a tenant to its limits together.",
        "issue 5",
    ),
    "tenants:sizes": Requirement(
        "A request or a question that is larger than its tenant's may be is refused with the "
        "limit; of a stranger's body no more is read than a small request has.",
        "issue 5",
    ),
    "tenants:tables": Requirement(
        "The limits of a tenant are its table over that of all, in the file, the environment and "
        "`sixhop check --print-config`, and follow a reload.",
        "issue 5",
    ),
    "tenants:tokens": Requirement(
        "A token is believed by its issuer's public key, its issuer, its audience and its time, "
        "and by nothing else; the issuer's keys stay while it is away, and a new one is found.",
        "issue 5",
    ),
    "tenants:tokens-are-a-debt": Requirement(
        "The tokens of a run are counted when it ends, and by its characters if it never said; "
        "who has used more than its share is refused until the minute has moved on.",
        "issue 5",
    ),
}
"""By id, as in tests/requirements.py."""
