"""Declares the traffic that is planned for, and what one call costs each part.

Where a number was measured by this project, its docstring says by what; take what your own suite
shows in place of it. The others are choices, and say so.
"""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field, ValidationError, field_validator, model_validator

from gateway.sizes import CPU_RATIO
from services.runtime.call import Group
from services.runtime.config import ConfigError, Section
from services.runtime.mistakes import describe
from services.runtime.setting_text import SettingError
from services.runtime.topology import DOMAIN, GATEWAY, LLM, MODEL, MODEL_BACKUP, ROUTING, TOOL

TOOL_GROUPS = (Group.CORE, Group.DATA, Group.AUXILIARY, Group.EXTERNAL)
"""The groups that tools belong to."""
SECTION = "traffic"
_RAREST = 1e-3
_NO_NUMBERS = ("float_type", "int_type")
TAIL = 3.0
"""How many times the median the 99th percentile of a provider is taken for: a choice."""
# Settings are named as in a configuration; these stand in no section, and in no variable.
_NAMES = re.compile(r"\[traffic\] | \(SIXHOP_[A-Z0-9_]+\)|(?<=\[)traffic\.")


class Numbers(Section):
    """Is the base of every table here: a text or a truth value is no number."""

    model_config = ConfigDict(strict=True)


class Spread(Numbers):
    """Says how long something takes, as a lognormal spread by two of its percentiles."""

    p50_s: float = Field(gt=0, le=600)
    """The median, seconds: half of all take longer."""
    p99_s: float = Field(gt=0, le=3600)
    """What 99 of 100 do not exceed, seconds; equal to the median for what never varies."""

    @model_validator(mode="after")
    def _in_order(self) -> "Spread":
        if self.p99_s < self.p50_s:
            advice = f"it is below p50_s = {self.p50_s:g}; write that or more"
            raise SettingError("p99_s", self.p99_s, advice)
        return self


class HopCost(Numbers):
    """Says what one call costs a hop.

    The defaults were measured by `benchmarks/run_cost.py` on 2026-11-30, four runs at a time on two
    shared virtual cores: the mean of the four shipped agents fits within a tenth, a single one
    within a third.
    """

    cpu_ms: float = Field(ge=0, le=60_000)
    """CPU time of one call without its events, milliseconds."""
    event_cpu_ms: float = Field(default=0.0, ge=0, le=1_000)
    """CPU time of each event that it passes on, milliseconds."""
    tool_cpu_ms: float = Field(default=0.0, ge=0, le=60_000)
    """CPU time of each tool call that it makes, milliseconds."""
    waits: Spread | None = None
    """How long it waits for what is not in the suite, such as a database; unset for nothing."""
    memory_mib: float = Field(default=70.0, gt=0, le=1_000_000)
    """What a process holds before any call is in flight, MiB."""
    cores: float = Field(default=1.0, gt=0, le=128)
    """Cores that one pod can use: one, because one interpreter runs one thread at a time."""


class ToolCost(Numbers):
    """Says how often tools of a group are called, and what that costs."""

    calls: float = Field(ge=0, le=1_000)
    """Calls of one run, on average; the defaults are the mean of the shipped agents."""
    model_calls: float = Field(default=0.0, ge=0, le=100)
    """Calls to the model of one such call, on average."""
    cpu_ms: float = Field(gt=0, le=600_000)
    """CPU time of one call, milliseconds; measured by `benchmarks/run_cost.py` on 2026-11-30, but
    for `external`, of which none is shipped: that is taken for a core tool's."""
    waits: Spread | None = None
    """How long it waits for what is not in the suite; unset for nothing."""


class SidecarCost(Numbers):
    """Says what a sidecar costs; all zero where there is no mesh."""

    cpu_ms: float = Field(default=0.3, ge=0, le=1_000)
    """CPU time of one call that passes one sidecar, milliseconds: 0.23 to 0.36 was measured with
    Envoy 1.40 on loopback, without TLS."""
    event_cpu_ms: float = Field(default=0.04, ge=0, le=1_000)
    """CPU time of one event that passes one sidecar, milliseconds; measured as above."""
    memory_mib: float = Field(default=68.0, ge=0, le=100_000)
    """What one holds with few endpoints, MiB; measured as above with two workers. It grows with the
    endpoints that it is told of, which was not measured."""
    workers: int = Field(default=2, ge=1, le=128)
    """Its worker threads; each keeps connections of its own. Istio starts two."""


class EjectionRule(Numbers):
    """Says when a sidecar ejects a pod, as the DestinationRules do."""

    consecutive_errors: int = Field(default=3, ge=1, le=20)
    """After so many failures in a row."""
    base_ejection_s: float = Field(default=30.0, gt=0, le=3600)
    """For how long at first, seconds; each further time so much longer."""
    max_ejection_percent: int = Field(default=50, ge=1, le=100)
    """How much of a pool may be ejected at once."""
    failing_ratio: float = Field(default=1.0, gt=0, le=1)
    """The part of its calls that the sick pod fails, 0–1."""

    @model_validator(mode="after")
    def _ever_ejects(self) -> "EjectionRule":
        if self.failing_ratio**self.consecutive_errors < _RAREST:
            least = _RAREST ** (1 / self.consecutive_errors)
            advice = (
                f"a pod that fails so few is hardly ever ejected by {self.consecutive_errors} "
                f"failures in a row; write {least:.2f} or more"
            )
            raise SettingError("failing_ratio", self.failing_ratio, advice)
        return self


class RedisCost(Numbers):
    """Says what a Redis carries, and how runs use it."""

    commands_per_s: float = Field(default=75_000.0, gt=0, le=1e8)
    """Commands of one Redis on one core, a second: `redis-benchmark` showed 74,000 to 77,000 for
    SET and GET with 20 clients on two shared virtual cores, 2026-11-30."""
    maxmemory_mib: float = Field(default=1536.0, gt=0, le=1e7)
    """What one may keep, MiB; the default is that of `k8s/components/redis`."""
    run_kib: float = Field(default=2.3, gt=0, le=100_000)
    """What a run takes there without its words and files, KiB; by `benchmarks/run_cost.py`."""
    words_kib: float = Field(default=2.9, ge=0, le=100_000)
    """What its words take, which are kept for `gateway.runs.resume_s`, KiB; measured as above."""
    file_ratio: float = Field(default=0.25, ge=0, le=1)
    """The part of the runs that have files, 0–1: of the shipped agents one of four makes some."""
    files_kib: float = Field(default=64.0, ge=0, le=1_000_000)
    """What the files of such a run take, KiB; measured as above: a chart and a PDF."""
    board_kib: float = Field(default=1.0, gt=0, le=64)
    """What one routing process tells the others of one address of the domain hop, KiB: 0.2 with
    nothing known of its dependencies, and some fifty bytes for each of them."""


class Traffic(Numbers):
    """Says what comes and what is wanted."""

    qps: float = Field(gt=0, le=1e7)
    """Runs that come per second, on average over the day."""
    peak_factor: float = Field(default=1.0, ge=1, le=100)
    """How many times as many come in the busiest minute; 1 says that `qps` is that already."""
    chunks: float = Field(default=24.0, ge=0, le=100_000)
    """Pieces of text of one generated answer. Measured by `benchmarks/run_cost.py` for 40 tokens at
    50 a second: pieces are at least `model.min_event_interval_s` apart."""
    direct_model_calls: float = Field(default=0.5, ge=0, le=100)
    """Calls of a run to the model without a tool between, on average; two of the four shipped
    agents make one."""
    backup_ratio: float = Field(default=0.01, ge=0, le=1)
    """The part of the model calls that go to the backup as well; a choice. 1 plans for an outage
    of the first model."""
    tenant_count: int = Field(default=100, ge=1, le=10_000_000)
    """Tenants that are active at a time, alike; a choice."""
    utilisation: float = Field(default=0.8, gt=0, lt=1)
    """The part of permits that may be in use; as bulkheads have it."""
    cpu_utilisation: float = Field(default=CPU_RATIO, gt=0, lt=1)
    """The part of a pod's cores that may be in use; as the autoscalers have it. A choice: own
    work takes 1 / (1 − this) times as long as on an idle pod, 2.5 times at 0.6 and five times at
    0.8."""
    spare_pods: int = Field(default=1, ge=0, le=1_000)
    """Pods of each hop that may be missing: N + 1."""
    min_pods: int = Field(default=3, ge=1, le=1_000)
    """The fewest pods of a hop; with three, two are left when one is ejected."""
    edge_pods: int = Field(default=2, ge=1, le=10_000)
    """Proxies before the gateway, each of which balances by what it sees itself."""
    stream_kib: float = Field(default=60.0, ge=0, le=100_000)
    """What a call in flight takes in a hop, KiB; the limit that `benchmarks/footprint.py` holds."""
    llm: Spread = Spread(p50_s=2.0, p99_s=6.0)
    """How long the provider takes for a whole answer; a choice, measure yours."""
    gateway: HopCost = HopCost(cpu_ms=2.0, event_cpu_ms=0.45, memory_mib=90)
    """What one run costs the gateway; much of it is writing its events."""
    routing: HopCost = HopCost(cpu_ms=16.0, event_cpu_ms=0.3, memory_mib=94)
    """Most of it is the vector of the question, by which the agent is chosen."""
    domain: HopCost = HopCost(cpu_ms=1.5, event_cpu_ms=0.4, tool_cpu_ms=1.4, memory_mib=65)
    """What one run costs the domain hop: the agent, apart from its tools."""
    tool: HopCost = HopCost(cpu_ms=0.0, memory_mib=245)
    """What all groups share; the work is in `core`, `data`, `auxiliary`, `external`."""
    core: ToolCost = ToolCost(calls=0.25, cpu_ms=2.5)
    """Tools that every run of their agents needs; `search` is shipped."""
    data: ToolCost = ToolCost(calls=1.0, cpu_ms=5.0)
    """Tools that ask a database; `profile` and `sql` are shipped."""
    auxiliary: ToolCost = ToolCost(calls=1.0, model_calls=0.5, cpu_ms=25.0)
    """Tools that an answer can do without: `chart`, `pdf`, and `summarise`, which asks a model."""
    external: ToolCost = ToolCost(calls=0.0, cpu_ms=2.5, waits=Spread(p50_s=0.3, p99_s=1.5))
    """Tools that ask other people's services; none is shipped."""
    model: HopCost = HopCost(cpu_ms=2.0, event_cpu_ms=0.5, memory_mib=70)
    """Stands for the backup as well, which runs the same code."""
    sidecar: SidecarCost = SidecarCost()
    """What each call and each pod costs beside the hop itself."""
    ejection: EjectionRule = EjectionRule()
    """When sidecars eject a pod that fails."""
    redis: RedisCost = RedisCost()
    """What a Redis carries, and what a run puts there."""

    @field_validator(
        *("llm", GATEWAY, ROUTING, DOMAIN, TOOL, MODEL, "external", "core", "data", "auxiliary"),
        mode="before",
    )
    @classmethod
    def _keep_other_defaults(cls, table: Any, info: Any) -> Any:
        # Setting one number of a part must not reset its others to the general defaults.
        if not isinstance(table, dict):
            return table
        return cls.model_fields[info.field_name].default.model_dump() | table

    @property
    def peak_qps(self) -> float:
        """Return the runs per second of the busiest minute."""
        return self.qps * self.peak_factor

    def tool_cost(self, group: Group) -> ToolCost:
        """Return what a group of tools costs."""
        cost: ToolCost = getattr(self, group.value)
        return cost

    def hop_cost(self, hop: str) -> HopCost:
        """Return what a hop costs."""
        cost: HopCost = getattr(self, MODEL if hop == MODEL_BACKUP else hop)
        return cost

    @property
    def tool_calls(self) -> float:
        """Return the tool calls of one run."""
        return sum(self.tool_cost(group).calls for group in TOOL_GROUPS)

    @property
    def model_calls(self) -> float:
        """Return the model calls of one run, by tools and without."""
        by_tools = (self.tool_cost(group) for group in TOOL_GROUPS)
        return self.direct_model_calls + sum(cost.calls * cost.model_calls for cost in by_tools)

    @property
    def events(self) -> float:
        """Return the events of one run.

        Accepted, routed, finished and some two more, two of each tool call, and the text where the
        agent itself asks the model. With the defaults 21.5; the four shipped agents showed 20.6 in
        `benchmarks/run_cost.py`.
        """
        return 5 + 2 * self.tool_calls + self.direct_model_calls * self.chunks


def read_traffic(path: Path | None, options: Mapping[str, Any]) -> Traffic:
    """Return the traffic that a file describes, with options of the command line over it.

    Of the provider's two percentiles, one may be left out: the 99th is taken for three times the
    median then.

    Args:
        path: a TOML file with the fields of `Traffic`; None for none.
        options: fields as well; a table in them is laid over the file's.

    Raises:
        ConfigError: the file cannot be read, a key is unknown or a value does not fit.
    """
    table = {} if path is None else _read_file(path)
    for name, value in options.items():
        inside = table.get(name, {})
        both = isinstance(value, dict) and isinstance(inside, dict)
        table[name] = {**inside, **value} if both else value
    llm = table.get(LLM)
    if isinstance(llm, dict):
        table[LLM] = _completed(llm)
    if "qps" not in table:
        raise ConfigError("say how many runs come per second: --qps 50, or qps = 50 in --traffic")
    try:
        return Traffic.model_validate(table)
    except ValidationError as error:
        told = _NAMES.sub("", describe(SECTION, Traffic, error))
        problem = error.errors(include_url=False)[0]
        if problem["type"] in _NO_NUMBERS and isinstance(problem["input"], str):
            told += ", without quotes"
        raise ConfigError(f"{told} (in {path}, or an option)" if path else told) from None


def _completed(llm: dict[str, Any]) -> dict[str, Any]:
    p50_s, p99_s = llm.get("p50_s"), llm.get("p99_s")
    if p99_s is None and isinstance(p50_s, int | float):
        return {**llm, "p99_s": TAIL * p50_s}
    if p50_s is None and isinstance(p99_s, int | float):
        return {**llm, "p50_s": p99_s / TAIL}
    return llm


def _read_file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path} does not exist; name another file or none") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None
