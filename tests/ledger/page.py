"""Lists what the page at `/` and what feeds it promise; in the order of the ids."""

from tests.ledger.entry import Requirement

PAGE: dict[str, Requirement] = {
    "breaker:by-order": Requirement(
        "An operator holds the breaker of any dependency of any hop open or closed for as long as "
        "they say, or resets it; it is announced, and forgotten by a restart.",
        "issue 5",
    ),
    "breaker:only-by-operators": Requirement(
        "A hop takes such an order with the operator's key, or, having none, where only its own "
        "machine can reach it; an inner hop without the file of the key takes none.",
        "issue 5",
    ),
    "cli:breaker": Requirement(
        "`sixhop breaker` holds a breaker of any hop open or closed, or resets it.",
        "issue 5",
    ),
    "page:ask": Requirement(
        "The page shows a run as it travels, and at its end what each of the six hops was given, "
        "used and had left; its chart is shown and its PDF opens.",
        "issue 5",
    ),
    "page:dependencies": Requirement(
        "The page shows breaker, limits and latency of every dependency as they change.",
        "issue 5",
    ),
    "page:key": Requirement(
        "Where the door asks for a key the page asks its reader, sends it with every request, and "
        "keeps it in the tab alone.",
        "issue 5",
    ),
    "page:keyboard": Requirement(
        "Everything on the page can be done with the keyboard, and one sees where one is.",
        "issue 5",
    ),
    "page:languages": Requirement(
        "The page speaks English and Chinese, and keeps what its reader has chosen.",
        "issue 5",
    ),
    "page:lines": Requirement(
        "A stream that is cut is taken up where it was, and a gateway that is silent is shown so "
        "until it is heard again.",
        "issue 5",
    ),
    "page:narrow": Requirement(
        "The page fits the screen of a phone.",
        "issue 5",
    ),
    "page:operator": Requirement(
        "The page lets nobody order without the operator's key, and nobody without asking once "
        "more; every order is in the log of whoever obeyed.",
        "issue 5",
    ),
    "page:orders": Requirement(
        "The door and the breakers are held over HTTP by who has the operator's key, from the page "
        "of this gateway and from no other site; without a key only under a loopback name, where "
        "callers need no keys, and through no proxy. Nobody is told that they may who may not.",
        "issue 5",
    ),
    "page:runs": Requirement(
        "The page lists recent runs by status and agent, each with a page of its events; those of "
        "another tenant are shown to who has the operator's key, and names it.",
        "issue 5",
    ),
    "page:safe": Requirement(
        "What a model or a user writes is shown as text; the page talks with its own door only.",
        "issue 5",
    ),
    "page:state": Requirement(
        "`/v1/state` tells how every process does, once or as it changes; one that is not heard is "
        "shown so. `/v1/health` tells the same in short, and `ok` only when all are ready. Where "
        "tenants are known, the state is for them and the operator.",
        "issue 5",
    ),
    "page:themes": Requirement(
        "The page is light or dark as the system is, unless its reader has chosen.",
        "issue 5",
    ),
}
"""By id, as in tests/requirements.py."""
