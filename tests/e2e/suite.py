"""Starts the suite as it is: five hops and a provider, each a process of its own."""

import asyncio
import http.client
import json
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from services.runtime.topology import DEPLOYMENTS, DOMAIN, HOPS, MODEL_BACKUP
from tests.ports import free_ports
from tests.processes import Child, end_all

HERE = Path(__file__).resolve().parent
START_TIMEOUT_S = 90.0
"""Far above the two seconds that it takes, for a machine that has other things to do."""
WAIT_S = 10.0
"""The longest wait for something that is bound to happen."""
POLL_S = 0.01
KEY = "the-key-of-the-tests"
HTTP = "http"
"""Names the port of the gateway's HTTP door."""


Found = TypeVar("Found")


class TimeLimitError(Exception):
    """Says that a condition did not come true in time."""


def wait_until(condition: Callable[[], bool], timeout_s: float, what: str) -> None:
    """Poll a condition while nothing else is to be done.

    Raises:
        TimeLimitError: it did not come true in time.
    """
    until = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > until:
            raise TimeLimitError(f"not within {timeout_s} s: {what}")
        time.sleep(POLL_S)


async def eventually(find: Callable[[], Sequence[Found]], timeout_s: float, what: str) -> Found:
    """Return the first thing found, and look again until there is one.

    Raises:
        TimeLimitError: nothing was found in time.
    """
    until = time.monotonic() + timeout_s
    while not (found := find()):
        if time.monotonic() > until:
            raise TimeLimitError(f"not within {timeout_s} s: {what}")
        await asyncio.sleep(POLL_S)
    return found[0]


class Provider:
    """Steers the provider's process and reads its log; all of it takes a millisecond."""

    def __init__(self, child: Child) -> None:
        """Take the process, which has been started and tells its port."""
        self.child = child
        wait_until(lambda: b"\n" in child.out.read_bytes(), START_TIMEOUT_S, "the provider's port")
        self.port: int = json.loads(child.out.read_bytes().splitlines()[-1])["port"]

    def behave(self, default: str, **behaviours: Mapping[str, Any]) -> None:
        """Answer every request from now on as `default` says; tests.provider knows the names."""
        self._request("POST", "/script", {"default": default, "behaviours": behaviours})

    def requests(self, run_id: str) -> list[dict[str, Any]]:
        """Return what was asked for one run, oldest first."""
        return [r for r in self.all_requests() if r["headers"].get("x-request-id") == run_id]

    def all_requests(self) -> list[dict[str, Any]]:
        """Return what was asked at all, oldest first."""
        log = self._request("GET", "/log")
        found: list[dict[str, Any]] = log["requests"]
        return found

    async def asked(self, run_id: str, *, chunk_count: int = 0) -> dict[str, Any]:
        """Return the first request of a run, once so many chunks of its answer were sent.

        Raises:
            TimeLimitError: there is none in time.
        """
        return await eventually(
            lambda: [r for r in self.requests(run_id) if r["chunks_sent"] >= chunk_count],
            WAIT_S,
            f"the provider sends {chunk_count} chunks for {run_id}",
        )

    async def left(self, run_id: str) -> dict[str, Any]:
        """Return the first request of a run, once its connection is gone.

        Raises:
            TimeLimitError: it is not in time.
        """
        return await eventually(
            lambda: [r for r in self.requests(run_id) if r["closed_ms"] is not None],
            WAIT_S,
            f"the provider loses the connection of {run_id}",
        )

    async def done(self, run_id: str) -> dict[str, Any]:
        """Return the first request of a run, once its whole answer was sent.

        Raises:
            TimeLimitError: it is not in time.
        """
        return await eventually(
            lambda: [r for r in self.requests(run_id) if r["ended"] == "complete"],
            WAIT_S,
            f"the provider sends its whole answer for {run_id}",
        )

    def _request(self, method: str, path: str, body: Any = None) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()


class Suite:
    """Is the running suite. Its hops can be stopped, killed and started again one by one.

    With `model_backup` among the hops, a second provider is started, behind that one.
    """

    def __init__(
        self,
        folder: Path,
        environment: Mapping[str, str],
        hops: Sequence[str] = HOPS,
        others: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        """Take where logs go, settings over those of the tests, and which processes are to run.

        Others are more processes of the domain hop: by the name of each, settings over all others.
        """
        self._hops = hops
        self._others = dict(others or {})
        names = [*HOPS, *DEPLOYMENTS, *self._others, HTTP]
        self._ports = dict(zip(names, free_ports(len(names)), strict=True))
        self.folder = folder
        """Where logs go."""
        self._provider_child = Child("provider", ["-m", "tests.provider"], {}, folder)
        self._second_child = Child("provider_backup", ["-m", "tests.provider"], {}, folder)
        self._environment = dict(environment)
        self._children: dict[str, Child] = {}

    def start(self) -> None:
        """Start everything and wait until every hop is ready.

        Raises:
            TimeLimitError: a hop is not ready in time; its log says why.
        """
        self._provider_child.start()
        self.provider = Provider(self._provider_child)
        environment = {
            **{f"SIXHOP_{hop.upper()}__PORT": str(self._ports[hop]) for hop in HOPS},
            "SIXHOP_GATEWAY__HTTP_PORT": str(self._ports[HTTP]),
            **self._second(),
            "SIXHOP_DOMAIN__REPLICAS": json.dumps(
                [self.address(name) for name in (DOMAIN, *self._others)]
            ),
            "SIXHOP_MODEL__BASE_URL": f"http://127.0.0.1:{self.provider.port}/v1",
            "SIXHOP_MODEL__API_KEY": KEY,
            "SIXHOP_MODEL__MODEL": "scripted",
            "SIXHOP_DOMAIN__AGENT_DIRS": json.dumps([str(HERE / "agents")]),
            "SIXHOP_TOOL__TOOL_DIRS": json.dumps([str(HERE / "tools")]),
            # Its own looks at the agents and their hop would be calls in flight now and then.
            "SIXHOP_ROUTING__REFRESH_INTERVAL_S": "3600",
            "SIXHOP_ROUTING__BOARD__POLL_INTERVAL_S": "3600",
            "SIXHOP_LOG__CALLS": "all",
            # Whoever keeps keys where the tests run is not to be asked for one.
            "SIXHOP_GATEWAY__OPEN": "true",
            # Some tests need more text than fits into the windows between all hops.
            "SIXHOP_MODEL__MAX_WRITTEN_TOKENS": "100000000",
            **self._environment,
        }
        for hop in self._hops:
            self._children[hop] = Child(hop, _command(hop), environment, self.folder)
        for name, settings in self._others.items():
            own = {"SIXHOP_DOMAIN__PORT": str(self._ports[name]), **settings}
            self._children[name] = Child(
                name, ["-m", "services.domain"], environment | own, self.folder
            )
        for child in self._children.values():
            child.start()
        for name in self._children:
            self.wait_ready(name)

    def _second(self) -> dict[str, str]:
        """Start the provider of the model that stands in; return what the hops are told of it."""
        if MODEL_BACKUP not in self._hops:
            return {}
        self._second_child.start()
        self.second_provider = Provider(self._second_child)
        return {
            "SIXHOP_MODEL_BACKUP__PORT": str(self._ports[MODEL_BACKUP]),
            "SIXHOP_MODEL_BACKUP__BASE_URL": f"http://127.0.0.1:{self.second_provider.port}/v1",
            "SIXHOP_MODEL_BACKUP__API_KEY": KEY,
            "SIXHOP_MODEL_BACKUP__MODEL": "small",
        }

    def end(self) -> None:
        """End everything, the outer hops first."""
        end_all((*self._children.values(), self._provider_child, self._second_child))

    @property
    def hops(self) -> Sequence[str]:
        """Return the names of its hops, without other replicas of them."""
        return self._hops

    def address(self, hop: str) -> str:
        """Return `host:port` of a hop."""
        return f"127.0.0.1:{self._ports[hop]}"

    def port(self, name: str) -> int:
        """Return the port of a hop, or of the HTTP door."""
        return self._ports[name]

    @property
    def url(self) -> str:
        """Return where the gateway serves HTTP, without a slash at the end."""
        return f"http://{self.address(HTTP)}"

    def child(self, hop: str) -> Child:
        """Return the process of a hop."""
        return self._children[hop]

    def wait_ready(self, hop: str) -> None:
        """Wait until a hop has logged that calls may come, and serves.

        Raises:
            TimeLimitError: it does not in time, or has ended; its log says why.
        """
        child = self._children[hop]

        def look() -> bool:
            said = [line["event"] for line in child.events()]
            return not child.alive or {"hop_ready", "hop_serving"} <= set(said)

        wait_until(look, START_TIMEOUT_S, f"{hop} is ready")
        if not child.alive:
            raise TimeLimitError(f"{hop} ended instead: {child.log.read_text()[-2000:]}")

    def heal(self) -> None:
        """Wake every hop that is frozen and start every one that has ended."""
        for hop, child in self._children.items():
            if child.alive:
                child.send(signal.SIGCONT)
            else:
                self.restart(hop)

    def kill(self) -> None:
        """Kill every hop."""
        for child in self._children.values():
            if child.alive:
                child.send(signal.SIGKILL)
                child.wait(WAIT_S)

    @contextmanager
    def stopped(self, hop: str) -> Iterator[None]:
        """Freeze a hop while the block runs."""
        self._children[hop].send(signal.SIGSTOP)
        try:
            yield
        finally:
            self._children[hop].send(signal.SIGCONT)

    def restart(self, hop: str) -> None:
        """Start a hop that has ended, on its old port, and wait until it is ready."""
        self._children[hop].start()
        self.wait_ready(hop)

    def logged(self, hop: str, run_id: str, *events: str) -> list[dict[str, Any]]:
        """Return the lines with one of these event names that a hop has written for a run."""
        return [line for line in self._children[hop].events(run_id) if line["event"] in events]

    async def line(self, hop: str, run_id: str, *events: str) -> dict[str, Any]:
        """Return the first such line; lines are written with a delay of some 50 ms.

        Raises:
            TimeLimitError: there is none in time.
        """
        return await eventually(
            lambda: self.logged(hop, run_id, *events),
            WAIT_S,
            f"{hop} logs {' or '.join(events)} for {run_id}",
        )


@contextmanager
def running_suite(
    folder: Path,
    hops: Sequence[str] = HOPS,
    others: Mapping[str, Mapping[str, str]] | None = None,
    /,
    **environment: str,
) -> Iterator[Suite]:
    """Start the suite, or some of its hops, and end it when the block is left, however."""
    suite = Suite(folder, environment, hops, others)
    try:
        suite.start()
        yield suite
    finally:
        suite.end()


def _command(hop: str) -> list[str]:
    if hop in DEPLOYMENTS:
        return ["-m", f"services.{DEPLOYMENTS[hop]}", f"--as={hop}"]
    return ["-m", "gateway" if hop == "gateway" else f"services.{hop}"]
