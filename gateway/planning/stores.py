"""Counts what runs ask of Redis, and of Postgres, which no hop uses.

The commands are those of `gateway/runs/redis_store.py`, `gateway/access/shared_meter.py` and
`services/routing/redis_store.py`; a test compares them with what a real Redis has counted.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.access.shared_meter import MAX_CONNECTIONS
from gateway.config import GatewaySettings, RunsSettings
from gateway.planning.tiers import Tier
from gateway.planning.traffic import Traffic
from gateway.runs.redis_store import MAX_READS
from gateway.runs.sharing import BATCH_COUNT, WRITE_INTERVAL_S
from services.runtime.config import Config
from services.runtime.topology import GATEWAY, ROUTING

BEGIN_COMMANDS = 2
"""ZADD to the index and SET of the record."""
END_COMMANDS = 4
"""The same again, SET of the events and SET of the words."""
FILE_COMMANDS = 2
"""HSET and PEXPIRE, of a run with files."""
INDEX_COMMANDS = 3
"""PEXPIRE, ZREMRANGEBYSCORE and ZRANGE, for each tenant in a batch of runs."""
QUOTA_COMMANDS = 3
"""A script that looks at the tokens, one that counts the request, one that notes the tokens."""
ACQUIRE_INSIDE = 7
"""Commands inside the script that counts: 2 GET, 3 PTTL, EXISTS and INCRBY."""
WINDOW_INSIDE = 4
"""Commands inside the script that looks: 2 GET and 2 PTTL."""
EXCHANGE_COMMANDS = 5
"""SET, SADD, PEXPIRE, SRANDMEMBER and MGET, of one exchange of the board."""
SHARE_INTERVAL_S = 1.0
"""How often boards are exchanged where `routing.board.share_interval_s` does not say it."""
MAX_PEERS = 64
"""Of so many other routing processes at most is anything read."""
WRITERS = 1
NO_POSTGRES = "no hop speaks to Postgres: runs and counts are kept in Redis or in memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreLoad:
    """Is what one use of Redis comes to at the busiest minute."""

    use: str
    """`runs`, `quota` or `board`."""
    configured: bool
    """Whether the configuration names a Redis for it; the numbers are as if it did."""
    commands_per_s: float
    """Commands that are sent, a second."""
    inside_per_s: float
    """Commands that scripts run there, a second."""
    kib_per_s: float
    """What is read from it, KiB per second, without what clients come back for."""
    memory_mib: float
    """What it keeps, MiB."""
    connections: int
    """The most connections that are open."""
    redis_ratio: float
    """The part of one Redis on one core that it takes. What scripts run is counted as if it had
    been sent, which is the most that it can be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StorePlan:
    """Is what all stores carry."""

    loads: Sequence[StoreLoad]
    redis_ratio: float
    """The part of one Redis on one core that all of it takes, counted as above."""
    memory_mib: float
    """What one Redis keeps of all uses, MiB."""
    postgres_per_s: float
    """Statements a second."""
    postgres_why: str


def plan_stores(traffic: Traffic, tiers: Sequence[Tier], config: Config) -> StorePlan:
    """Return what every store carries at the busiest minute.

    Raises:
        ConfigError: the section of the gateway cannot be read.
    """
    pods = {tier.name: tier.pods for tier in tiers}
    settings = config.section(GATEWAY, GatewaySettings)
    loads = [
        _runs(traffic, pods[GATEWAY], settings.runs),
        _quota(traffic, pods[GATEWAY], config, settings),
        _board(traffic, pods[ROUTING], config),
    ]
    return StorePlan(
        loads=loads,
        redis_ratio=sum(load.redis_ratio for load in loads),
        memory_mib=sum(load.memory_mib for load in loads),
        postgres_per_s=0.0,
        postgres_why=NO_POSTGRES,
    )


def _runs(traffic: Traffic, gateways: int, settings: RunsSettings) -> StoreLoad:
    """Count the writes of runs: each when it begins and when it ends, in batches.

    What comes within `WRITE_INTERVAL_S` at one gateway is one batch, of `BATCH_COUNT` runs at most.
    With `g` writes expected, a batch is due with the probability `1 − exp(−g)`, and of `T` tenants
    that are alike it has `T (1 − exp(−g / T))`. Once a tenant has more than `max_count` runs, each
    batch also drops as many as it brings: a ZREM by tenant, and one DEL.
    """
    rate, tenants = traffic.peak_qps, traffic.tenant_count
    each = BEGIN_COMMANDS + END_COMMANDS + FILE_COMMANDS * traffic.redis.file_ratio
    written = 2 * rate / gateways * WRITE_INTERVAL_S
    batches = max(-math.expm1(-written), written / BATCH_COUNT)
    named = batches * _distinct(tenants, written / batches)
    by_batch = INDEX_COMMANDS * named
    kept = traffic.qps * 2 * settings.max_age_s / tenants
    if kept > settings.max_count:
        begun = written / 2
        by_batch += batches * _distinct(tenants, begun / batches) + min(batches, begun)
    held = tenants * min(float(settings.max_count), traffic.qps * settings.max_age_s / tenants)
    words_s = settings.max_age_s if settings.keep_prompts else settings.resume_s
    words = min(held, traffic.qps * words_s)
    redis = traffic.redis
    each_kib = redis.run_kib + redis.file_ratio * redis.files_kib
    kib = held * each_kib + words * redis.words_kib
    commands_per_s = rate * each + gateways * by_batch / WRITE_INTERVAL_S
    return StoreLoad(
        use="runs",
        configured=bool(settings.redis_url.get_secret_value()),
        commands_per_s=commands_per_s,
        inside_per_s=0.0,
        redis_ratio=commands_per_s / redis.commands_per_s,
        kib_per_s=0.0,
        memory_mib=kib / 1024,
        connections=gateways * (MAX_READS + WRITERS),
    )


def _distinct(tenants: int, runs: float) -> float:
    """Return how many tenants some runs are of, when each is of any tenant alike."""
    return tenants * -math.expm1(-runs / tenants)


def _quota(traffic: Traffic, gateways: int, config: Config, settings: GatewaySettings) -> StoreLoad:
    """Count what limits of tenants ask: a look and a note for tokens, a count for requests.

    As if every tenant had both limits. Tokens of one tenant that end at the same moment are noted
    together, so this is the most.
    """
    tables = [config.tenants.default, *config.tenants.named.values()]
    limited = any(t.requests_per_minute or t.tokens_per_minute for t in tables)
    sent = QUOTA_COMMANDS * traffic.peak_qps
    inside = (2 * ACQUIRE_INSIDE + WINDOW_INSIDE) * traffic.peak_qps
    return StoreLoad(
        use="quota",
        configured=bool(settings.quota_redis_url.get_secret_value()) and limited,
        commands_per_s=sent,
        inside_per_s=inside,
        redis_ratio=(sent + inside) / traffic.redis.commands_per_s,
        kib_per_s=0.0,
        # Two minutes of two counters each, some hundred bytes a counter.
        memory_mib=traffic.tenant_count * 4 * 0.1 / 1024,
        connections=gateways * MAX_CONNECTIONS,
    )


def _board(traffic: Traffic, routings: int, config: Config) -> StoreLoad:
    """Count the exchanges of the health board: each routing process reads what all others tell."""
    table = config.raw.get(ROUTING, {}).get("board", {})
    interval_s = float(table.get("share_interval_s", SHARE_INTERVAL_S))
    exchanges = routings / interval_s
    read = min(routings - 1, MAX_PEERS)
    return StoreLoad(
        use="board",
        configured=bool(table.get("redis_url")),
        commands_per_s=exchanges * EXCHANGE_COMMANDS,
        inside_per_s=0.0,
        redis_ratio=exchanges * EXCHANGE_COMMANDS / traffic.redis.commands_per_s,
        kib_per_s=exchanges * read * traffic.redis.board_kib,
        memory_mib=routings * traffic.redis.board_kib / 1024,
        connections=routings,
    )
