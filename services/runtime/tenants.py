"""Defines what the configuration allows each tenant: the tables of `[tenants]`."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field

from services.runtime.call import Criticality
from services.runtime.sections import ConfigError, read_policy

SECTION = "tenants"
DEFAULT = "default"
"""The table whose values hold for every tenant that does not set its own."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""A tenant's name travels as metadata and stands in logs."""

LEVELS = dict(Criticality.__members__)
"""The levels by name."""
Level = Literal["SHEDDABLE", "SHEDDABLE_PLUS", "CRITICAL", "CRITICAL_PLUS"]
Count = Annotated[int | None, Field(ge=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantLimits:
    """Bounds what one tenant may do; what is not set is not limited."""

    requests_per_minute: Count = None
    """How many calls may come within a minute that slides; shared by all gateways with one Redis
    (`quota_redis_url` in [gateway]), else of each gateway."""
    tokens_per_minute: Count = None
    """How many tokens runs may use within a minute that slides, read and written together. Known
    only afterwards: whoever is in debt is refused until the minute has moved on."""
    max_concurrent_runs: Count = None
    """How many calls may be under way at each gateway; a stream is until its end."""
    max_criticality: Level = "CRITICAL_PLUS"
    """The highest level that a call may claim, because the lowest is refused first under load; a
    call that claims more is served as this."""
    agents: frozenset[str] | None = None
    """The agents that may answer, by name; routing chooses among these only. An empty list allows
    none."""
    tools: frozenset[str] | None = None
    """The tools that runs may use, by name; all others are neither offered nor executed. An empty
    list allows none. The caller's own tools, which the caller executes, are not meant."""
    max_deadline_s: Annotated[float | None, Field(gt=0, le=86_400)] = None
    """Longer deadlines are cut to it, seconds; `max_deadline_s` in [deadline] holds for all."""
    max_body_bytes: Count = None
    """The largest request in bytes, its files included; that of [gateway] holds for all."""
    max_prompt_chars: Count = None
    """The longest question in characters, with all that was said before it."""


UNLIMITED = TenantLimits()


@dataclass(frozen=True, slots=True)
class Tenants:
    """Holds what is allowed to whom."""

    default: TenantLimits = UNLIMITED
    """What tenants have that are not named, and callers that nobody has named."""
    named: Mapping[str, TenantLimits] = field(default_factory=dict)

    def of(self, tenant: str) -> TenantLimits:
        """Return the limits of a tenant; a name without a table has the defaults."""
        return self.named.get(tenant, self.default)

    def tables(self) -> Mapping[str, TenantLimits]:
        """Return the table of each name, the defaults first."""
        return {DEFAULT: self.default, **self.named}

    def settings(self) -> dict[str, Any]:
        """Return all of it as plain values, by the table's name."""
        return {name: asdict(limits) for name, limits in self.tables().items()}


def read_tenants(section: Mapping[str, Any]) -> Tenants:
    """Return the tenants as their tables declare them; each has the defaults it does not set.

    Raises:
        ConfigError: a name cannot be one, a key is unknown, or a value does not fit.
    """
    for name, table in section.items():
        if not NAME.fullmatch(name):
            raise ConfigError(
                f"[{SECTION}.{name}] is no name for a tenant; take up to 64 letters, digits, dots, "
                "hyphens and underscores, a letter or digit first"
            )
        if not isinstance(table, Mapping):
            raise ConfigError(
                f"[{SECTION}] {name} is a value; write the limits of a tenant into "
                f"[{SECTION}.NAME], and those of all into [{SECTION}.{DEFAULT}]"
            )
    default = section.get(DEFAULT, {})
    return Tenants(
        _read(DEFAULT, default),
        {name: _read(name, default | table) for name, table in section.items() if name != DEFAULT},
    )


def _read(name: str, table: Mapping[str, Any]) -> TenantLimits:
    return read_policy(f"{SECTION}.{name}", TenantLimits, table)
