"""Keeps the ledger of what this project promises.

An entry is a promise that a test holds up; ``@requirement("deadline:unary-share")`` on the test
ties the two, and ``pytestmark = requirement(...)`` ties a whole module. Each file of tests/ledger/
holds the promises of one part, and its first line says which; what is left is here.
tests/architecture/test_ledger.py fails on an entry without a test, and on a test in contract/,
integration/, e2e/ or drills/ without an entry.
"""

import pytest

from tests.ledger.architecture import ARCHITECTURE
from tests.ledger.cluster import CLUSTER
from tests.ledger.conversing import CONVERSING
from tests.ledger.edge import EDGE
from tests.ledger.engine import ENGINE
from tests.ledger.entry import Requirement
from tests.ledger.failover import FAILOVER
from tests.ledger.health import HEALTH
from tests.ledger.http import HTTP
from tests.ledger.http_wire import HTTP_WIRE
from tests.ledger.mesh import MESH
from tests.ledger.model import MODEL
from tests.ledger.model_time import MODEL_TIME
from tests.ledger.page import PAGE
from tests.ledger.plan import PLAN
from tests.ledger.provider import PROVIDER
from tests.ledger.provider_faults import PROVIDER_FAULTS
from tests.ledger.runs import RUNS
from tests.ledger.sim import SIM
from tests.ledger.strangers import STRANGERS
from tests.ledger.tenants import TENANTS

__all__ = ["REQUIREMENTS", "Requirement", "requirement"]

REQUIREMENTS: dict[str, Requirement] = {
    **EDGE,
    **HEALTH,
    **HTTP,
    **HTTP_WIRE,
    **MESH,
    **MODEL,
    **MODEL_TIME,
    **PROVIDER,
    **SIM,
    **CLUSTER,
    **CONVERSING,
    **FAILOVER,
    **PROVIDER_FAULTS,
    **STRANGERS,
    **TENANTS,
    **PAGE,
    **RUNS,
    **PLAN,
    **ARCHITECTURE,
    "cancel:reaches-the-provider": Requirement(
        "When the client goes away, the provider has lost its connection within 250 ms and no hop "
        "has anything left.",
        "issue 2",
    ),
    "cli:ask-shows-the-way": Requirement(
        "`sixhop ask` shows the answer, its files, and for each hop what it was given, used and "
        "had left; without control characters where nobody looks at a terminal.",
        "issue 2",
    ),
    "cli:cancel": Requirement(
        "Ctrl-C ends a question in every hop.",
        "issue 2",
    ),
    "cli:check": Requirement(
        "`sixhop check` shows what each hop gets of a deadline, and what is wrong in any room.",
        "design 3",
    ),
    "cli:demo": Requirement(
        "`sixhop demo` answers questions over the shipped sample, with files, and stops what it "
        "started.",
        "issue 2",
    ),
    "cli:exit-codes": Requirement(
        "A command ends with 0 when it succeeded, 1 when it failed, 2 when its user can repair "
        "it and 130 after Ctrl-C; never with a traceback.",
        "issue 2",
    ),
    "cli:health": Requirement(
        "`sixhop health` tells within a second or so which hops serve, and which are silent.",
        "issue 2",
    ),
    "cli:health-dependencies": Requirement(
        "`sixhop health` tells whom a hop does not call at present, and why.",
        "issue 3",
    ),
    "cli:one-json-document": Requirement(
        "With --json, `sixhop ask` writes one document, for success and for failure.",
        "issue 2",
    ),
    "cli:up-refuses": Requirement(
        "`sixhop up` refuses a taken port or a wrong configuration with the setting to change, "
        "and leaves nothing running.",
        "issue 2",
    ),
    "cli:up-restarts": Requirement(
        "`sixhop up` starts a hop that died again, and questions are answered again.",
        "issue 2",
    ),
    "cli:up-stops-clean": Requirement(
        "`sixhop up` stops its hops in reverse order, and none outlives it, however it ends.",
        "issue 2",
    ),
    "cancel:threads-come-back": Requirement(
        "A query whose caller has gone is interrupted, and its thread serves others.",
        "issue 2",
    ),
    "deadline:missing-refused": Requirement(
        "A call without a deadline is refused everywhere but at the gateway, which gives it "
        "one and cuts what is too long.",
        "design 3",
    ),
    "deadline:not-worth-sending": Requirement(
        "What a dependency could not answer in time is not sent.",
        "design 3",
    ),
    "deadline:self-deadline": Requirement(
        "A hop answers by itself before its caller's deadline.",
        "design 3",
    ),
    "deadline:shrinks-hop-by-hop": Requirement(
        "Each hop sees less time than its caller has: 60 % for an answer, all but the margin "
        "for a stream.",
        "design 3",
    ),
    "deadline:stream-limits": Requirement(
        "Every wait of a stream is bounded: the first event, the gaps, the first content and "
        "the whole; a heartbeat does not extend the wait for content.",
        "design 3",
    ),
    "deadline:stream-margin": Requirement(
        "The callee of a stream has at most what its caller has, less the caller's margin; the "
        "provider behind the last hop too.",
        "design 3",
    ),
    "deadline:unary-share": Requirement(
        "No hop waits for an answer longer than 60 % of what it has left, whatever is configured.",
        "design 3",
    ),
    "deadline:wait-share": Requirement(
        "No hop waits for a silent callee longer than 60 % of what it has left.",
        "design 3",
    ),
    "deadline:wire-grid": Requirement(
        "What gRPC rounds up on the wire never exceeds what the caller computed.",
        "design 3",
    ),
    "drain:streams-end-well": Requirement(
        "A hop that is told to stop finishes its streams, or ends them by a typed error when its "
        "drain time is over, and exits with 0.",
        "issue 2",
    ),
    "errors:bug-withheld": Requirement(
        "The text of a defect never leaves the process.",
        "design 5",
    ),
    "errors:fault-attribution": Requirement(
        "Only own failures use a code that a mesh counts; everybody else's failure names its "
        "origin, copied unchanged by every relay.",
        "design 5",
    ),
    "errors:stray-cancel": Requirement(
        "A hop that awaited something cancelled answers at once instead of leaving its caller "
        "to its deadline.",
        "grpc trap T2",
    ),
    "errors:table": Requirement(
        "Every error travels with one code, one reason and exactly one ErrorInfo that names "
        "hop, cause and the milliseconds left.",
        "design 5",
    ),
    "extension:agent-is-one-file": Requirement(
        "An agent is one new file, here or in a folder named in the configuration; "
        "no other changes.",
        "design 2",
    ),
    "extension:backend-is-one-file": Requirement(
        "A model backend is one new file, here or in a folder named in the configuration; "
        "no other changes.",
        "design 2",
    ),
    "extension:tool-is-one-file": Requirement(
        "A tool is one new file, here or in a folder named in the configuration; no other changes.",
        "design 2",
    ),
    "failure:killed-hop-is-named": Requirement(
        "When a process is killed in the middle of a run, the client has one typed error that "
        "names it.",
        "issue 2",
    ),
    "failure:late-connection-is-none": Requirement(
        "A callee that takes a connection late is waited for like one that answers late.",
        "issue 2",
    ),
    "failure:nothing-left": Requirement(
        "250 ms after the client's answer no hop on its way has a call, an outgoing call or a "
        "task left.",
        "issue 2",
    ),
    "failure:restarted-hop-is-found": Requirement(
        "After a killed process is back, the suite answers again and nothing else was restarted.",
        "issue 2",
    ),
    "failure:stopped-hop-is-named-in-time": Requirement(
        "When a process freezes in the middle of a run, the client has, before its deadline, a "
        "degraded answer or one typed error that names the hop, the cause and the time left.",
        "issue 2",
    ),
    "gateway:bad-input": Requirement(
        "A question that no agent could answer is refused at the door, with the field and "
        "what would be right.",
        "issue 2",
    ),
    "grpc:traps": Requirement(
        "What grpc.aio does against expectation, and we work around, is noticed when it changes.",
        "grpc traps T1-T8",
    ),
    "health:names": Requirement(
        "A process tells apart that it lives and that it is ready, for itself and for each "
        "service, whatever its load.",
        "design 6",
    ),
    "health:snapshot": Requirement(
        "A process tells how many calls it serves and makes, and that none is left when none is.",
        "design 6",
    ),
    "input:clear-errors": Requirement(
        "Bad input is answered by one clear typed error, and leaves nothing running.",
        "issue 2",
    ),
    "model:budget-travels": Requirement(
        "The provider is told how long an answer may take, whose request it is, and what was "
        "asked.",
        "design 3, issue 2",
    ),
    "model:cancel-closes-the-connection": Requirement(
        "When the caller is gone, the provider's connection is closed within 250 ms, in every "
        "phase of a call.",
        "design 7, issue 2",
    ),
    "model:connections-are-reused": Requirement(
        "A connection to the provider is used again only when its answer was read to the end.",
        "design 7",
    ),
    "model:embedded-model-says-so": Requirement(
        "The embedded model never passes for more than a demo: every answer names it as one.",
        "issue 2",
    ),
    "model:no-finish-reason-no-success": Requirement(
        "Nothing truncated is ever presented as complete: without a finish reason there is no "
        "success.",
        "design 1",
    ),
    "model:pieces-are-joined": Requirement(
        "Text that arrives together travels as one event, and the first is never held back.",
        "design 7",
    ),
    "model:provider-faults-are-typed": Requirement(
        "Whatever a provider does wrong is one typed error that names it and the cause, and no "
        "secret.",
        "design 5, issue 2",
    ),
    "model:provider-silence-is-bounded": Requirement(
        "A provider's silence ends by a limit, and keep-alive comments do not extend it.",
        "design 7",
    ),
    "model:reasoning-is-progress": Requirement(
        "A model's reasoning is told apart from its answer.",
        "design 7",
    ),
    "model:usage-is-true-or-marked": Requirement(
        "Token counts are the provider's, or are marked as an estimate.",
        "issue 2",
    ),
    "process:drain": Requirement(
        "A process that is told to stop finishes what is in flight and takes nothing new.",
        "issue 2",
    ),
    "process:port-taken": Requirement(
        "A port that is taken is named, with the setting that changes it.",
        "issue 2",
    ),
    "process:refuses-to-start": Requirement(
        "A hop with a configuration that cannot hold refuses to start, with the place, the "
        "numbers and a fix.",
        "design 3",
    ),
    "reports:travel": Requirement(
        "What every hop below was given, used and had left reaches a client that asks, and comes "
        "with every error.",
        "design 10",
    ),
    "run:ask-is-run": Requirement(
        "Ask gives what Run gives, at once.",
        "proto gateway.v1",
    ),
    "run:heartbeat": Requirement(
        "A run that has nothing to say yet says that it lives.",
        "design 7",
    ),
    "run:identity-travels": Requirement(
        "Run, request, criticality and trace reach every hop; a client cannot name its tenant.",
        "design 9",
    ),
    "run:never-truncated": Requirement(
        "Nothing that was cut is presented as complete.",
        "design 1",
    ),
    "run:stream-rules": Requirement(
        "The stream of a run counts from 1 without gaps and has exactly one terminal event, "
        "the last; a run that fails has none.",
        "proto gateway.v1",
    ),
    "run:unknown-agents": Requirement(
        "An agent that nobody knows is NOT_FOUND, and the known ones are named.",
        "issue 2",
    ),
    "run:unknown-events": Requirement(
        "An event of a later release passes through and does no harm.",
        "style 3",
    ),
    "server:reflection": Requirement(
        "A hop lists and describes its services by reflection, in both versions of it.",
        "issue 2",
    ),
    "server:unknown-methods": Requirement(
        "A method that a hop does not serve is UNIMPLEMENTED.",
        "issue 2",
    ),
    "stream:cancelled-when-left": Requirement(
        "Whoever leaves a stream ends it everywhere, also in the middle, also while the other "
        "side is blocked.",
        "grpc trap T5",
    ),
    "stream:held-until-left": Requirement(
        "What a policy holds for a stream is held until the stream is left, not until its "
        "first event.",
        "style 1",
    ),
    "readme:true": Requirement(
        "What the README shows works as it stands there, and fits on two screens.",
        "issue 2",
    ),
    "telemetry:names-in-one-file": Requirement(
        "Every log event is named in telemetry.py, and no two names mean one event.",
        "design 2",
    ),
    "testing:no-unawaited-answer": Requirement(
        "In the tests of servicers a coroutine that nobody awaited never counts as an answer.",
        "issue 2",
    ),
} | ENGINE
"""Every promise, by its id: ``subject:what-holds``."""


def requirement(*ids: str) -> pytest.MarkDecorator:
    """Tie a test to the entries that it holds up.

    Raises:
        KeyError: there is no such entry.
    """
    for entry in ids:
        if entry not in REQUIREMENTS:
            raise KeyError(f"{entry} is no promise yet: add it to tests/requirements.py")
    return pytest.mark.requirement(*ids)
