"""Takes a changed configuration into a running hop: the whole of it, or nothing."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from services.runtime.call import Inbound
from services.runtime.config import POLICY_SECTIONS, Config, ConfigError, load_config
from services.runtime.guarding import Guard
from services.runtime.ladder import check_ladder
from services.runtime.outgoing import Outgoing
from services.runtime.policies.bulkhead import BulkheadConfig
from services.runtime.policies.deadline import ServerDeadline
from services.runtime.policy_settings import PolicySettings, policy_settings
from services.runtime.stack import ClientPolicies, EdgeRules, ServerPolicies
from services.runtime.telemetry import (
    CONFIG_RELOADED,
    RELOAD_REFUSED,
    ServerTelemetry,
    get_logger,
)
from services.runtime.tenancy import Tenancy
from services.runtime.tenants import SECTION as TENANTS
from services.runtime.topology import GATEWAY

READ_TIMEOUT_S = 5.0
"""How long reading and checking may take; a file on a lost disk must not keep its reader."""
LIVE_SECTIONS = ("deadline", "calls", "log", TENANTS, *POLICY_SECTIONS)
"""What may change while a hop runs; all else is fixed with its start."""
_SECRETS = ("key", "secret", "password", "token")
"""How the names of settings end that nobody may read in a log."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Is a configuration that has passed every check, and how it differs from the one before."""

    config: Config
    policies: PolicySettings
    changed: Mapping[str, str]
    """By the setting: its old value and its new one, for people."""


def read_again(old: Config, path: Path | None) -> Reading:
    """Read and check everything anew; change nothing.

    The environment of a process is fixed with its start, and still wins over the file.

    Args:
        old: the configuration that holds now.
        path: the file that was named at the start; None looks for it as the start did.

    Raises:
        ConfigError: the file is gone or wrong, or asks for what cannot change in a running hop.
    """
    if old.source and not Path(old.source).is_file():
        raise ConfigError(f"{old.source} is not a file any more; put it back")
    new = load_config(path)
    policies = policy_settings(new)
    fixed = sorted(_differing(_fixed(old), _fixed(new)))
    if fixed:
        raise ConfigError(
            f"{', '.join(fixed)}: cannot change while the hop runs; "
            "start it again, or take that back for the rest to change"
        )
    check_ladder(new)
    before, after = _live(old, policy_settings(old)), _live(new, policies)
    return Reading(
        config=new,
        policies=policies,
        changed={
            key: _change(key, before.get(key), after.get(key))
            for key in sorted(_differing(before, after))
        },
    )


Read = Callable[[Config], Awaitable[Reading]]
"""Reads again what differs from a configuration."""


@dataclass(slots=True)
class Live:
    """Holds what of a hop follows its configuration while it runs."""

    hop: str
    config: Config
    guards: Sequence[Guard[Inbound]]
    """What wraps the serving of a call."""
    server: ServerPolicies | None
    """None while the engine is off, as below."""
    client: ClientPolicies | None
    tenancy: Tenancy | None = None
    """None behind the edge."""
    outgoing: list[Outgoing] = field(default_factory=list)
    """The ways to other hops."""

    def take(self, reading: Reading) -> None:
        """Let the hop follow another configuration. Calls under way keep what they were given."""
        config = self.config = reading.config
        edge = edge_rules(self.hop, config)
        for guard in self.guards:
            if isinstance(guard, ServerTelemetry):
                guard.log_calls = logs_calls(self.hop, config)
            elif isinstance(guard, ServerDeadline):
                guard.reconfigure(
                    default_deadline_s=edge.default_deadline_s, max_deadline_s=edge.max_deadline_s
                )
        for outgoing in self.outgoing:
            outgoing.limits = config.limits(outgoing.dependency)
        if self.server is not None:
            self.server.reconfigure(reading.policies)
        if self.client is not None:
            self.client.reconfigure(reading.policies)
        if self.tenancy is not None:
            self.tenancy.reconfigure(config.tenants)


def logs_calls(hop: str, config: Config) -> bool:
    """Tell whether a hop writes a line for each call that ended well."""
    return config.log.calls == "all" or (config.log.calls == "edge" and hop == GATEWAY)


def edge_rules(hop: str, config: Config) -> EdgeRules:
    """Return what a hop does with the deadlines of calls that arrive."""
    if hop != GATEWAY:
        return EdgeRules()
    return EdgeRules(
        default_deadline_s=config.deadline.default_deadline_s,
        max_deadline_s=config.deadline.max_deadline_s,
    )


async def reload_whenever(asked: asyncio.Event, live: Live, read: Read) -> None:
    """Read the configuration again each time this is asked for, for ever.

    Asking several times while it is being read has it read once more.
    """
    while True:
        await asked.wait()
        asked.clear()
        await reload(live, read)


async def read_off_the_loop(old: Config, path: Path | None) -> Reading:
    """Do the same as `read_again`, in a thread.

    A file may be slow, and the checks take as long as many calls.

    Raises:
        ConfigError: as `read_again`, or it takes too long.
    """
    try:
        async with asyncio.timeout(READ_TIMEOUT_S):
            return await asyncio.to_thread(read_again, old, path)
    except TimeoutError:
        raise ConfigError(
            f"the configuration could not be read within {READ_TIMEOUT_S:g} s; ask again"
        ) from None


async def reload(live: Live, read: Read) -> None:
    """Read the configuration again and follow it; or follow the old one, and say why."""
    try:
        reading = await read(live.config)
    except ConfigError as error:
        get_logger().error(RELOAD_REFUSED, problem=str(error))
    else:
        live.take(reading)
        journal = get_logger().journal
        # Whatever the level: whoever has asked wants to know.
        journal.reconfigure("info")
        get_logger().info(CONFIG_RELOADED, changed=reading.changed)
        journal.reconfigure(reading.config.log.level)


def _live(config: Config, policies: PolicySettings) -> dict[str, Any]:
    """Return what may change, with defaults filled in, by `section.key`."""
    sections = {
        "deadline": config.deadline.model_dump(),
        "calls": config.calls.model_dump(),
        "log": config.log.model_dump(),
        TENANTS: config.tenants.settings(),
        **asdict(policies),
    }
    return dict(_flat(sections))


def _fixed(config: Config) -> dict[str, Any]:
    """Return what may not change, as it was written, by `section.key`."""
    sections = {k: v for k, v in config.raw.items() if k not in LIVE_SECTIONS}
    shared = config.policy("bulkhead", BulkheadConfig).shared
    switches = {"deadline": {"mode": config.deadline.mode}, "bulkhead": {"shared": shared}}
    return dict(_flat(sections | switches))


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> set[str]:
    missing = object()
    keys = before.keys() | after.keys()
    return {key for key in keys if before.get(key, missing) != after.get(key, missing)}


def _change(key: str, before: Any, after: Any) -> str:
    if key.endswith(_SECRETS):
        return "changed"
    return f"{_text(before)} → {_text(after)}"


def _text(value: Any) -> str:
    if isinstance(value, frozenset):
        return ", ".join(sorted(map(str, value))) or "none"
    return str(value)
