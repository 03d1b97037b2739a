"""Compares declared timeouts with what running hops measure, and proposes better ones."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from gateway.addresses import addresses
from gateway.cli.console import one_line
from gateway.cli.dependencies import step_timeouts
from gateway.cli.health import ask_hops
from gateway.cli.hop_health import HopHealth
from services.runtime.config import CallsSettings, Config
from services.runtime.durations import to_seconds
from services.runtime.ladder import ladder_problems
from services.runtime.policies.adaptive import MIN_SAMPLES
from services.runtime.policies.deadline import margin_s
from services.runtime.rungs import patience_s
from services.runtime.verdict import GRID_RATIO
from sixhop.runtime.v1 import runtime_pb2

HEADROOM = 1.5
"""How many times the p99 a timeout should be: a hundredth of calls is no accident, and a busy hour
is half as slow again."""
LOOSE_RATIO = 0.5
"""A timeout of which not even this part is wanted may be lowered."""
WORTH_RATIO = 0.1
"""What moves a timeout by less than this part of it is not worth a change."""
HUNG_RATIO = GRID_RATIO
"""A callee half of whose calls take this part of their timeout was cut off rather than served."""
FEW, HUNG, TIGHT, LOOSE, FITTING = "too few calls", "hangs", "too tight", "loose", "fits"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Is what one hop has measured of one callee; lengths in seconds."""

    hop: str
    """Who calls."""
    key: str
    """The callee: `model`, `tool/sql`."""
    call_count: int
    """How many answers were looked at."""
    p50_s: float
    p99_s: float
    least_s: float
    """What the timeouts of this callee must not go below."""
    declared_s: float
    """After how long a call to it ends at the latest by declaration."""
    own: bool
    """Whether it is the callee itself that declares this, and not a setting of its callers."""

    @property
    def dependency(self) -> str:
        """Return the hop that is called."""
        return self.key.partition("/")[0]

    @property
    def enough(self) -> bool:
        """Return whether the p99 is more than a guess."""
        return self.call_count >= MIN_SAMPLES


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Is what a setting should be; lengths in seconds."""

    setting: str
    """The setting, such as `calls.tool.step_timeout_s`; what is no setting names whose it is:
    `timeout_s of tool/sql`."""
    declared_s: float
    proposed_s: float
    because: str
    """The numbers behind it; when it is what is declared, what keeps it there."""
    own: bool = False
    """Whether a callee declares it in its own file, and not the configuration."""

    @property
    def changes(self) -> bool:
        """Return whether something is to be changed."""
        return self.proposed_s != self.declared_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """Holds what the running hops have measured, and what follows from it."""

    hops: tuple[tuple[str, str], ...]
    """Each hop with its state."""
    observations: tuple[Observation, ...]
    proposals: tuple[Proposal, ...]

    @property
    def answered(self) -> bool:
        """Return whether any hop has measured a callee."""
        return bool(self.observations)


async def observe(config: Config) -> Observed:
    """Ask all running hops what they have measured.

    Raises:
        ConfigError: the section of a policy cannot be read.
    """
    return compare(await ask_hops(addresses(config), step_timeouts(config)), config)


def compare(hops: Sequence[HopHealth], config: Config) -> Observed:
    """Return what follows from what hops have told."""
    observations = tuple(
        observation
        for hop in hops
        if hop.told is not None
        for observation in _observations(hop.name, hop.told.dependencies, config)
    )
    return Observed(
        hops=tuple((hop.name, hop.state) for hop in hops),
        observations=observations,
        proposals=tuple(propose(observations, config)),
    )


def judge(observation: Observation) -> str:
    """Return how the declared timeout suits what was measured."""
    if not observation.enough:
        return FEW
    declared_s, wanted_s = observation.declared_s, HEADROOM * observation.p99_s
    if observation.p50_s >= HUNG_RATIO * declared_s:
        return HUNG
    if wanted_s > declared_s:
        return TIGHT
    # Never tighter than what this callee is to have at least.
    return LOOSE if max(wanted_s, observation.least_s) < LOOSE_RATIO * declared_s else FITTING


def propose(observations: Iterable[Observation], config: Config) -> list[Proposal]:
    """Return a timeout for every dependency, and for every callee with its own, that is known.

    It is 1.5 times the p99 of its slowest callee, at least what its timeouts must not go below,
    and at most what leaves the whole configuration without contradiction. Of a callee that hangs
    it is what is declared: its answers never came, so nobody knows what they would take.
    """
    slowest: dict[str, Observation] = {}
    for each in observations:
        if not each.enough:
            continue
        name = each.key if each.own else each.dependency
        if name not in slowest or each.p99_s > slowest[name].p99_s:
            slowest[name] = each
    most_problems = len(set(ladder_problems(config)))
    return [
        _propose_own(each, config) if each.own else _propose(each, config, most_problems)
        for each in slowest.values()
    ]


def _propose(seen: Observation, config: Config, most_problems: int) -> Proposal:
    limits = config.limits(seen.dependency)
    declared_s = patience_s(limits)
    key = "step_timeout_s" if declared_s == limits.step_timeout_s else "first_content_timeout_s"
    because, wanted_s = _because(seen), _wanted_s(seen)
    proposed_s = wanted_s
    if judge(seen) in (FITTING, HUNG):
        proposed_s = declared_s
    elif not _holds(seen.dependency, key, wanted_s, config, most_problems):
        proposed_s = _nearest_that_holds(
            seen.dependency, key, declared_s, wanted_s, config, most_problems
        )
        because += f"; {wanted_s:g} s would not fit the other limits"
    return Proposal(
        setting=f"calls.{seen.dependency}.{key}",
        declared_s=declared_s,
        proposed_s=proposed_s,
        because=because,
    )


def _propose_own(seen: Observation, config: Config) -> Proposal:
    step_s = config.limits(seen.dependency).step_timeout_s
    # The callee answers by itself before its callers have stopped waiting.
    most_s = step_s - margin_s(step_s)
    because, proposed_s = _because(seen), _wanted_s(seen)
    if judge(seen) in (FITTING, HUNG):
        proposed_s = seen.declared_s
    elif proposed_s > most_s:
        because += f"; calls.{seen.dependency}.step_timeout_s {step_s:g} s leaves no more"
        proposed_s = max(most_s, seen.declared_s)
    return Proposal(
        setting=f"timeout_s of {seen.key}",
        declared_s=seen.declared_s,
        proposed_s=proposed_s,
        because=because,
        own=True,
    )


def _because(seen: Observation) -> str:
    return f"p99 {seen.p99_s:.3g} s of {seen.call_count} calls to {seen.key}"


def _wanted_s(seen: Observation) -> float:
    return _rounded_up(max(HEADROOM * seen.p99_s, seen.least_s))


def _nearest_that_holds(
    dependency: str,
    key: str,
    declared_s: float,
    wanted_s: float,
    config: Config,
    most_problems: int,
) -> float:
    """Return the length nearest to the wanted one that can hold, or the declared one."""
    for tenth in range(9, 0, -1):
        length_s = _rounded_up(declared_s + tenth / 10 * (wanted_s - declared_s))
        worth_it = abs(length_s - declared_s) >= WORTH_RATIO * declared_s
        if worth_it and _holds(dependency, key, length_s, config, most_problems):
            return length_s
    return declared_s


def _holds(dependency: str, key: str, length_s: float, config: Config, most_problems: int) -> bool:
    """Tell whether a configuration with this timeout has no more contradictions than so many."""
    settings = getattr(config.calls, dependency).model_copy(update={key: length_s})
    calls: CallsSettings = config.calls.model_copy(update={dependency: settings})
    after = ladder_problems(replace(config, calls=calls))
    return len(after) <= most_problems


def _rounded_up(length_s: float) -> float:
    """Return a length with two digits, never less."""
    if length_s <= 0:
        return 0.0
    step = 10.0 ** (math.floor(math.log10(length_s)) - 1)
    return round(math.ceil(length_s / step - 1e-9) * step, 6)


def _observations(
    hop: str, told: Iterable[runtime_pb2.DependencySnapshot], config: Config
) -> Iterable[Observation]:
    for each in told:
        dependency = each.key.partition("/")[0]
        if dependency not in CallsSettings.model_fields or not each.HasField("adaptive_timeout"):
            continue
        seen, declared_s = each.adaptive_timeout, patience_s(config.limits(dependency))
        own = each.HasField("declared_timeout_duration")
        told_s = to_seconds(each.declared_timeout_duration) if own else declared_s
        yield Observation(
            hop=hop,
            key=one_line(each.key),
            call_count=seen.sample_count,
            p50_s=round(to_seconds(seen.p50_latency), 6),
            p99_s=round(to_seconds(seen.p99_latency), 6),
            least_s=round(to_seconds(seen.min_timeout_duration), 6),
            declared_s=min(told_s, declared_s),
            own="/" in each.key and told_s < declared_s,
        )
