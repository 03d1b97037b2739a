"""Reads files and environment, the only module that does, into typed settings."""

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    field_validator,
)
from pydantic_core import PydanticCustomError

from services.runtime.call import CallLimits, Group
from services.runtime.call_settings import CallSettings as CallSettings  # callers find both here
from services.runtime.call_settings import CallsSettings as CallsSettings
from services.runtime.environment import CONFIG_VARIABLE as CONFIG_VARIABLE
from services.runtime.environment import overlay
from services.runtime.heartbeat import HeartbeatSettings
from services.runtime.sections import (
    NO_FOLDER,
    MissingFileError,
    PolicyT,
    SectionT,
    read_policy,
    read_section,
    split_names,
)
from services.runtime.sections import ConfigError as ConfigError  # callers find both here
from services.runtime.sections import Section as Section
from services.runtime.setting_text import PREFIX as PREFIX
from services.runtime.setting_text import nearest, refusal
from services.runtime.tenants import SECTION as TENANTS
from services.runtime.tenants import Tenants, read_tenants
from services.runtime.topology import DEFAULT_PORTS, DEPLOYMENTS, EDGES, HOPS, LLM, SIM, Edge

DEFAULT_FILE = "sixhop.toml"
EMBEDDED = "embedded"
"""What `base_url` says of a model to mean the small one that is shipped."""
MAX_PORT = 65535
_ADDRESS = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+):[0-9]{1,5}")


Names = Annotated[tuple[str, ...], BeforeValidator(split_names)]
"""A list of names; in the environment with commas between them."""
Folders = Annotated[tuple[Path, ...], BeforeValidator(split_names)]
"""A list of folders; in the environment with commas between them."""


def _existing(folders: tuple[Path, ...]) -> tuple[Path, ...]:
    for folder in folders:
        if not folder.is_dir():
            raise PydanticCustomError(
                NO_FOLDER,
                "the folder {folder} does not exist; create it or leave it out",
                {"folder": str(folder)},
            )
    return folders


ExistingFolders = Annotated[Folders, AfterValidator(_existing)]
"""The same, of folders that have to be there."""


class HopSettings(Section):
    """Says where a hop listens and how it stops. Each room adds its own fields."""

    host: str = "127.0.0.1"
    """The address to listen on and to be called at; loopback unless told otherwise."""
    port: int = Field(default=0, ge=0, le=MAX_PORT)
    """The TCP port; 0 takes the topology's, so that all hops of one machine differ."""
    drain_timeout_s: float = Field(default=5.0, ge=0, le=300)
    """How long calls in flight may go on after SIGTERM, seconds; five, so that a suite on a desk
    stops soon. In a cluster it must hold the longest run."""
    metrics_port: int = Field(default=0, ge=0, le=MAX_PORT)
    """Where a hop tells Prometheus its state over HTTP, as `/metrics`; 0 is nowhere: two hops of
    one machine must not meet."""


class ReplicatedSettings(HopSettings):
    """Adds where several processes of one hop are called, for callers that choose among them."""

    replicas: Names = ()
    """The processes, `host:port` each; without any there is one, at `host` and `port`. A proxy that
    balances by itself is one address."""

    @field_validator("replicas")
    @classmethod
    def _are_addresses(cls, replicas: tuple[str, ...]) -> tuple[str, ...]:
        for address in replicas:
            if not _ADDRESS.fullmatch(address):
                raise PydanticCustomError("no_address", "write each process as host:port")
            if not 1 <= int(address.rpartition(":")[2]) <= MAX_PORT:
                raise PydanticCustomError(
                    "no_port",
                    "the port of {address} is not between 1 and {most}",
                    {"address": address, "most": MAX_PORT},
                )
        if len(set(replicas)) < len(replicas):
            raise PydanticCustomError("twice", "an address is there twice; name each process once")
        return replicas


class DeadlineSettings(Section):
    """Sets the budget arithmetic of the design, section 3."""

    mode: Literal["propagated", "static"] = "propagated"
    """How deadlines are handed on. `propagated`: every wait is a share of what the caller has left.
    `static`: every call has the step timeout of its callee, whatever its caller has left, and the
    start-up check binds nobody. That is how platforms fail: only to show it. Fixed with the
    start."""
    share: float = Field(default=0.6, gt=0, le=0.6)
    """The part of the time remaining that one wait may take; never above 0.6, so that what is left
    pays for something else."""
    default_deadline_s: float = Field(default=30.0, gt=0)
    """What the gateway gives a call that has no deadline, seconds; as long as people wait."""
    max_deadline_s: float = Field(default=120.0, gt=0)
    """What the gateway cuts longer deadlines to, seconds: a longer run would hold its permits for
    minutes, and nobody waits for it any more."""


class EngineSettings(Section):
    """Switches the policy engine: breakers, bulkheads, retries, admission and their like."""

    enabled: bool = True
    """On, because without it one slow tool holds everybody up; off for comparisons. Deadlines and
    budgets are always on. `[breaker]`, `[bulkhead]`, `[retry]` and the other sections tune it."""


_KEY_FILE = ("operator", "key_file")


class OperatorSettings(Section):
    """Says who may give orders, such as to refuse calls for a while or to hold a breaker."""

    key: SecretStr = SecretStr("")
    """Whoever knows it may; without any, orders are taken only where nobody from outside can call:
    at a hop that listens on a loopback address. A hop that has none elsewhere takes no orders."""
    key_file: Path | None = None
    """A file that holds the key, for secrets that are mounted; used when `key` is empty. Both are
    read when a hop starts; an inner hop where the file is not takes no orders."""

    @property
    def has_key(self) -> bool:
        """Return whether a key is configured."""
        return bool(self.key.get_secret_value().strip()) or self.key_file is not None

    def secret(self) -> str:
        """Return the key; empty without one.

        Raises:
            ConfigError: the file cannot be read, or the key cannot travel in metadata.
        """
        key = self.key.get_secret_value().strip()
        if not key and self.key_file is not None:
            try:
                key = self.key_file.read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                advice = f"it cannot be read ({type(error).__name__}); name a file that can"
                raise MissingFileError(refusal(_KEY_FILE, str(self.key_file), advice)) from None
            if not key:
                advice = "it is empty; write the key into it"
                raise ConfigError(refusal(_KEY_FILE, str(self.key_file), advice))
        if not all("!" <= character <= "~" for character in key):
            advice = "it may have visible ASCII characters only; make one with openssl rand -hex 24"
            raise ConfigError(refusal(("operator", "key"), "", advice))
        return key


class LogSettings(Section):
    """Says what is logged."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least level that is written; info is what an operator wants to know."""
    calls: Literal["all", "edge", "none"] = "edge"
    """Which hops write a line for each call that ended well: all, or only the gateway, whose
    answer tells what the others were given and used. A line costs a hop a tenth of its CPU.
    Failures are always written, by every hop that sees them."""


POLICY_SECTIONS = (
    "breaker",
    "retry",
    "hedge",
    "fallback",
    "adaptive",
    "bulkhead",
    "admission",
    "limit",
    "shed",
    "self_ejection",
)
"""The sections that policies declare beside their code, as frozen dataclasses."""

RUNTIME_SECTIONS: Mapping[str, type[Section]] = {
    "deadline": DeadlineSettings,
    "calls": CallsSettings,
    "log": LogSettings,
    "engine": EngineSettings,
    "operator": OperatorSettings,
    "heartbeat": HeartbeatSettings,
}
KNOWN_SECTIONS = (*RUNTIME_SECTIONS, *POLICY_SECTIONS, TENANTS, *HOPS, *DEPLOYMENTS, LLM, SIM)
TABLES: Mapping[str, Sequence[str]] = dict.fromkeys(KNOWN_SECTIONS, ()) | {
    "calls": tuple(CallsSettings.model_fields),
    "bulkhead": tuple(group.value for group in Group),
    "admission": ("levels", "shares"),
    "fallback": ("backup",),
    "limit": ("gradient",),
    "routing": ("board",),
    "gateway": ("jwt", "runs"),
}
"""The sections with the tables in them, to find what a variable is meant to be."""


@dataclass(frozen=True, slots=True)
class Config:
    """Holds what the file and the environment said, and the sections that every hop reads."""

    raw: Mapping[str, Any]
    deadline: DeadlineSettings
    calls: CallsSettings
    log: LogSettings
    engine: EngineSettings
    operator: OperatorSettings
    heartbeat: HeartbeatSettings
    tenants: Tenants
    source: str
    """The file that was read, for messages; empty without one."""

    def section(self, name: str, kind: type[SectionT]) -> SectionT:
        """Return one section as its owner declares it.

        Raises:
            ConfigError: a key is unknown or a value does not fit.
        """
        return read_section(name, kind, self.raw.get(name, {}))

    def policy(self, name: str, kind: type[PolicyT]) -> PolicyT:
        """Return the section of a policy as the policy declares it.

        Raises:
            ConfigError: a key is unknown or a value does not fit.
        """
        return read_policy(name, kind, self.raw.get(name, {}))

    def runs(self, name: str) -> bool:
        """Return whether a process of this name is meant to be there.

        Every hop is. A second deployment of one is when it is told whom to ask: `base_url`.
        """
        return name not in DEPLOYMENTS or bool(self.raw.get(name, {}).get("base_url"))

    @property
    def processes(self) -> tuple[str, ...]:
        """Return the names of the processes that are meant to be there, from the client inwards."""
        return (*HOPS, *(name for name in DEPLOYMENTS if self.runs(name)))

    @property
    def edges(self) -> tuple[Edge, ...]:
        """Return the calls that these processes make."""
        return tuple(edge for edge in EDGES if self.runs(edge.caller) and self.runs(edge.callee))

    def hop(self, name: str) -> HopSettings:
        """Return what every hop's section has: where it listens and how it stops.

        Raises:
            ConfigError: a value does not fit.
        """
        return self._part(name, HopSettings)

    def address(self, hop: str) -> str:
        """Return `host:port` of a hop."""
        settings = self.hop(hop)
        return f"{settings.host}:{settings.port or DEFAULT_PORTS[hop]}"

    def replicas(self, hop: str) -> tuple[str, ...]:
        """Return `host:port` of every process of a hop that its caller chooses among.

        Raises:
            ConfigError: a value does not fit.
        """
        return self._part(hop, ReplicatedSettings).replicas or (self.address(hop),)

    def _part(self, name: str, kind: type[SectionT]) -> SectionT:
        """Return a section without what only its room knows."""
        known = kind.model_fields
        table = {key: value for key, value in self.raw.get(name, {}).items() if key in known}
        return read_section(name, kind, table)

    def port(self, hop: str) -> int:
        """Return the port of a hop."""
        return self.hop(hop).port or DEFAULT_PORTS[hop]

    @property
    def static_deadlines(self) -> bool:
        """Return whether calls have timeouts of their own, whatever their callers have left."""
        return self.deadline.mode == "static"

    def limits(self, dependency: str) -> CallLimits:
        """Return the limits of calls to a dependency."""
        settings: CallSettings = getattr(self.calls, dependency)
        return CallLimits(
            step_timeout_s=settings.step_timeout_s,
            read_timeout_s=settings.read_timeout_s,
            first_content_timeout_s=settings.first_content_timeout_s,
            min_useful_s=settings.min_useful_s,
            share=1.0 if self.static_deadlines else self.deadline.share,
        )


def load_config(path: Path | None = None, environ: Mapping[str, str] | None = None) -> Config:
    """Read the file, then the environment over it.

    The file is `path`, else the one that `SIXHOP_CONFIG` names, else `sixhop.toml` here if there
    is one. `SIXHOP_MODEL__BASE_URL` sets `base_url` in `[model]`.

    Raises:
        ConfigError: the file cannot be read, or a section or key is unknown or wrong.
    """
    raw, source = read_raw(path, os.environ if environ is None else environ)
    for name in raw:
        if name not in KNOWN_SECTIONS:
            raise ConfigError(f"[{name}] is not a section{nearest(name, KNOWN_SECTIONS)}")
        if not isinstance(raw[name], dict):
            raise ConfigError(f"[{name}] must be a table")
    return Config(
        raw=raw,
        deadline=read_section("deadline", DeadlineSettings, raw.get("deadline", {})),
        calls=read_section("calls", CallsSettings, raw.get("calls", {})),
        log=read_section("log", LogSettings, raw.get("log", {})),
        engine=read_section("engine", EngineSettings, raw.get("engine", {})),
        operator=read_section("operator", OperatorSettings, raw.get("operator", {})),
        heartbeat=read_section("heartbeat", HeartbeatSettings, raw.get("heartbeat", {})),
        tenants=read_tenants(raw.get(TENANTS, {})),
        source=source,
    )


def read_raw(path: Path | None, environ: Mapping[str, str]) -> tuple[dict[str, Any], str]:
    """Return what the file and the environment say, unchecked, and the file that was read.

    Raises:
        ConfigError: one of them cannot be read.
    """
    named = path or (Path(environ[CONFIG_VARIABLE]) if environ.get(CONFIG_VARIABLE) else None)
    raw, source = _read_file(named)
    overlay(raw, environ, TABLES)
    return raw, source


def pod_name(hop: str, environ: Mapping[str, str] | None = None) -> str:
    """Return this process's name: the pod's, else the hop's with the process id."""
    environ = os.environ if environ is None else environ
    return environ.get("POD_NAME") or f"{hop}-{os.getpid()}"


def _read_file(named: Path | None) -> tuple[dict[str, Any], str]:
    path = named or Path(DEFAULT_FILE)
    if named is None and not path.exists():
        return {}, ""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8")), str(path)
    except FileNotFoundError:
        raise ConfigError(f"{path} does not exist; name another file or none") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None
