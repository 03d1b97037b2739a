"""Measures what a flooding tenant costs another, and whether time tells wrong keys from unknown.

`python -m benchmarks.tenants` starts a suite, and takes some two minutes.
"""

import argparse
import asyncio
import json
import random
import secrets
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.isolation import Found, in_turns
from benchmarks.targets import Target
from gateway.access.jwks import read_jwks
from gateway.access.jwt_settings import JwtSettings
from gateway.access.keys import KeyRing, make_key
from gateway.access.tokens import Tokens
from services.runtime.client import open_channel
from services.runtime.errors import UnauthenticatedError
from services.runtime.topology import GATEWAY
from sixhop.gateway.v1 import gateway_pb2
from sixhop.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from sixhop.type.v1 import run_pb2
from tests.e2e.doors import Sender, Sent, at_rate, sent
from tests.e2e.suite import Suite, running_suite
from tests.e2e.tenants.asking import put_key
from tests.integration.gateway.issuer import AUDIENCE, ISSUER, rsa_key, token

QUIET, FLOOD = Sender("quiet"), Sender("flood")
DEADLINE_S = 10.0
QUIET_RATE, FLOOD_RATE = 10.0, 100.0
"""Calls a second; those of the flood are a hundred times what its tenant may send."""
LIMITS = {
    "SIXHOP_GATEWAY__OPEN": "false",
    "SIXHOP_TENANTS__FLOOD__REQUESTS_PER_MINUTE": "60",
    "SIXHOP_TENANTS__FLOOD__MAX_CONCURRENT_RUNS": "2",
    "SIXHOP_LOG__CALLS": "none",
}
KEY_COUNT = 1_000
TRIALS = 200_000
BLOCK = 1_000


class Flood:
    """Asks a gateway for two tenants."""

    def __init__(self, stub: GatewayServiceStub, keys: Mapping[str, str], length_s: float) -> None:
        """Take the way, the keys by tenant, and how long a window is."""
        self._stub = stub
        self._keys = keys
        self._length_s = length_s
        question = run_pb2.Question(text="Go.")
        self._request = gateway_pb2.AskRequest(question=question, agent="probe_six")
        self.refused_count = 0

    async def calm(self) -> Sequence[Sent]:
        """Let the quiet tenant ask alone."""
        return await at_rate(self._ask, {QUIET: QUIET_RATE}, self._length_s)

    async def disturbed(self) -> Sequence[Sent]:
        """Let it ask beside the flood."""
        rates = {QUIET: QUIET_RATE, FLOOD: FLOOD_RATE}
        calls = await at_rate(self._ask, rates, self._length_s)
        self.refused_count += sum(each.reason == "QUOTA_EXCEEDED" for each in calls)
        return [each for each in calls if each.sender == QUIET]

    async def _ask(self, sender: Sender) -> Sent:
        metadata = (("authorization", f"Bearer {self._keys[sender.tenant]}"),)
        return await sent(
            sender, self._stub.Ask(self._request, timeout=DEADLINE_S, metadata=metadata)
        )


async def flooded(suite: Suite, keys: Mapping[str, str], options: argparse.Namespace) -> Found:
    """Measure the quiet tenant with and without the flood."""
    suite.provider.behave("at-once")
    async with open_channel(suite.address(GATEWAY)) as channel:
        flood = Flood(GatewayServiceStub(channel), keys, options.length_s)
        await flood.calm()
        found = Found("a tenant beside one that floods")
        windows = {
            "calm": flood.calm,
            "calm again": flood.calm,
            "disturbed": flood.disturbed,
        }
        await in_turns(found, windows, options.rounds, options.seed)
    print(f"calls of the flood refused: {flood.refused_count}")
    return found


def timed(check: Callable[[str], object], keys: Sequence[str]) -> float:
    """Return the nanoseconds that a refusal of one key takes, on average of a block."""
    began = time.perf_counter_ns()
    for key in keys:
        try:
            check(key)
        except UnauthenticatedError:
            continue
    return (time.perf_counter_ns() - began) / len(keys)


def wrong_and_unknown(seed: int) -> tuple[float, float, float]:
    """Return the median time of a wrong and of an unknown key, and how often the first is larger.

    The last is of blocks measured in pairs, in an order drawn anew: a half says that nobody can
    tell one from the other by its time.
    """
    now = datetime.now(UTC)
    made = [
        make_key("acme", name="", now=now, expires=None, random_bytes=secrets.token_bytes)
        for _ in range(KEY_COUNT)
    ]
    ring = KeyRing(record for _, record in made)
    wrong = [f"sk-sixhop-{record.id}-{secrets.token_hex(32)}" for _, record in made][:BLOCK]
    unknown = [f"sk-sixhop-{secrets.token_hex(6)}-{secrets.token_hex(32)}" for _ in wrong]
    kinds = {"wrong": wrong, "unknown": unknown}
    taken: dict[str, list[float]] = {"wrong": [], "unknown": []}
    rng = random.Random(seed)
    for _ in range(TRIALS // BLOCK):
        for kind in rng.sample(list(kinds), 2):
            taken[kind].append(timed(lambda key: ring.tenant_of(key, now), kinds[kind]))
    pairs = list(zip(taken["wrong"], taken["unknown"], strict=True))
    larger = statistics.fmean(one > other for one, other in pairs)
    return statistics.median(taken["wrong"]), statistics.median(taken["unknown"]), larger


class _OneKey:
    """Knows the key of one issuer."""

    def __init__(self, content: bytes) -> None:
        """Take what the issuer publishes."""
        self._keys = read_jwks(content)

    async def find(self, key_id: str | None, within_s: float) -> object:
        """Return it."""
        return self._keys.get(key_id or "")

    async def keep(self) -> None:
        """Have nothing to do."""


async def token_cost_us() -> float:
    """Return what it takes to believe one token, microseconds."""
    key = rsa_key("k")
    settings = JwtSettings(jwks_url="https://a/", issuer=ISSUER, audience=AUDIENCE)
    source = _OneKey(json.dumps({"keys": [key.public]}).encode())
    tokens = Tokens(settings, source)  # type: ignore[arg-type] # of the real one only what is asked
    text = token(key, exp=datetime.now(UTC) + timedelta(hours=1))
    lengths = []
    for _ in range(1_000):
        began = time.perf_counter_ns()
        await tokens.tenant_of(text, 1.0)
        lengths.append(time.perf_counter_ns() - began)
    return statistics.median(lengths) / 1000


def main() -> int:
    """Measure, print, and return 0 when every target is met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--length-s", type=float, default=4.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    wrong_ns, unknown_ns, larger = wrong_and_unknown(options.seed)
    print(f"a wrong key {wrong_ns:.0f} ns, an unknown one {unknown_ns:.0f} ns;")
    print(f"the wrong one took longer in {larger:.0%} of the pairs")
    print(f"a token that is believed: {asyncio.run(token_cost_us()):.0f} µs")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "keys.json"
        keys = {sender.tenant: put_key(path, sender.tenant) for sender in (QUIET, FLOOD)}
        settings = LIMITS | {"SIXHOP_GATEWAY__KEYS_FILE": str(path)}
        with running_suite(folder, **settings) as suite:
            found = asyncio.run(flooded(suite, keys, options))
    found.print_table()
    verdicts = found.verdicts()
    apart = Target("pairs in which the wrong key took longer, away from half", 10, at_least=False)
    verdicts.append(apart.judge(100 * abs(larger - 0.5), " points"))
    for _, line in verdicts:
        print(line)
    return 0 if all(kept for kept, _ in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
