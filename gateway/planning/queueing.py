"""Computes what queueing theory says of calls that come at random.

Everywhere: rates in calls per second, times in seconds, `load` in Erlangs, which is how many calls
are in flight on average.
"""

import math
from dataclasses import dataclass

from gateway.planning.traffic import Spread

Z99 = 2.3263478740408408
"""So many standard deviations above the mean lies the 99th percentile of a normal spread."""
_EVEN_VARIANCE = 3.42
_EVEN_FIT = 0.85


@dataclass(frozen=True, slots=True)
class Moments:
    """Is the mean and the variability of a length of time."""

    mean_s: float
    """The mean, seconds, 0 or more."""
    scv: float
    """The squared coefficient of variation, variance / mean²; 0 for what never varies, 1 for an
    exponential spread."""


NONE = Moments(0.0, 0.0)
"""Takes no time."""


def moments(spread: Spread | None) -> Moments:
    """Return mean and variability of a lognormal spread.

    With the standard deviation `d` of the logarithm: `ln p99 − ln p50 = 2.326 d`,
    `mean = p50 · exp(d² / 2)`, `scv = exp(d²) − 1`. Johnson, Kotz, Balakrishnan, *Continuous
    Univariate Distributions* 1, chapter 14.
    """
    if spread is None:
        return NONE
    variance = sigma(spread) ** 2
    return Moments(spread.p50_s * math.exp(variance / 2), math.expm1(variance))


def sigma(spread: Spread) -> float:
    """Return the standard deviation of the logarithm of a lognormal spread, 0 or more."""
    return math.log(spread.p99_s / spread.p50_s) / Z99


def longer_ratio(spread: Spread, limit_s: float) -> float:
    """Return the part of a lognormal spread that takes longer than a limit, 0–1.

    `1 − Φ((ln limit − ln p50) / d)`.

    Args:
        spread: the spread.
        limit_s: the limit, seconds, above 0.
    """
    distance = math.log(limit_s / spread.p50_s)
    if sigma(spread) == 0:
        return 0.0 if distance >= 0 else 1.0
    return 0.5 * math.erfc(distance / sigma(spread) / math.sqrt(2))


def in_flight(rate: float, mean_s: float) -> float:
    """Return how many calls are in flight on average: `L = λ · W`.

    Little, *A Proof for the Queuing Formula L = λW*, Operations Research 9 (1961). It holds for any
    spread, any order and any number of servers, as long as what comes also goes.

    Args:
        rate: calls that come per second, 0 or more.
        mean_s: how long one is there, with all its waits, seconds.
    """
    return rate * mean_s


def shared_time(work_s: float, busy_ratio: float) -> float:
    """Return how long own work takes on a core that others use as well: `S / (1 − busy)`.

    Processor sharing, M/G/1-PS: Kleinrock, *Queueing Systems* 2, section 4.4. Only the mean of the
    work counts, and not its spread.

    Args:
        work_s: the CPU time of one call, seconds.
        busy_ratio: the part of the core that is in use, 0 to below 1.

    Raises:
        ValueError: the core is full, so that no time is long enough.
    """
    if not 0 <= busy_ratio < 1:
        raise ValueError("a core that is full finishes nothing in time")
    return work_s / (1 - busy_ratio)


def erlang_c(servers: int, load: float) -> float:
    """Return the part of the calls that find all places taken and wait, 0–1.

    `C = B / (1 − load / servers · (1 − B))`, and Erlang B by its recursion `B(0) = 1`,
    `B(n) = load · B(n−1) / (n + load · B(n−1))`: Cooper, *Introduction to Queueing Theory*,
    chapter 3. Exact for calls that come at random and take exponential times, and a few per cent
    off for others.

    Args:
        servers: the places, 1 or more.
        load: calls in flight on average; at the number of places or above all calls wait.
    """
    if load >= servers:
        return 1.0
    blocked = 1.0
    for count in range(1, servers + 1):
        blocked = load * blocked / (count + load * blocked)
    return blocked / (1 - load / servers * (1 - blocked))


def wait_ratio(servers: int, load: float, peakedness: float = 1.0) -> float:
    """Return the part of the calls that wait when they come more evenly than by chance, 0–1.

    Hayward's approximation: as if there were `1 / z` as many places and calls of size `z`:
    `C(servers / z, load / z)`: Fredericks, *Congestion in Blocking Systems*, Bell System Technical
    Journal 59 (1980). Between whole numbers of places the logarithm is interpolated.

    Args:
        servers: the places, 1 or more.
        load: calls in flight on average.
        peakedness: variance / mean of what would be in flight if nobody had to wait, above 0 and up
            to 1, which is chance.
    """
    scaled, whole = servers / peakedness, math.floor(servers / peakedness)
    lower, upper = (erlang_c(each, load / peakedness) for each in (whole, whole + 1))
    if lower <= 0 or upper <= 0:
        return 0.0
    return math.exp(math.log(lower) + (scaled - whole) * math.log(upper / lower))


def mean_wait_s(
    servers: int, load: float, held: Moments, peakedness: float = 1.0, relief: float = 0.0
) -> float:
    """Return how long a call waits for a place on average, seconds, those that do not included.

    `C · W / (c − a (1 − relief)) · (scv + (1 − scv) D)`, where `D` is the wait for what takes
    always the same time as a part of that for an exponential one:
    `D = (1 + (1 − b)(c − 1)(√(4 + 5c) − 2) / (16 b c)) / 2` with `b = a / c`: Cosmetatos, *Some
    Approximate Equilibrium Results for the Multi-Server Queue M/G/r*, Operational Research
    Quarterly 27 (1976). With `D = 1/2` and no relief it would be the Allen–Cunneen approximation.

    Args:
        servers: the places, 1 or more.
        load: calls in flight on average; at the number of places or above the wait has no end.
        held: how long a call holds its place.
        peakedness: as of `wait_ratio`.
        relief: by which part fewer calls come while some wait, 0–1.
    """
    if load >= servers:
        return math.inf
    if load <= 0:
        return 0.0
    busy = load / servers
    apart = (1 - busy) * (servers - 1) * (math.sqrt(4 + 5 * servers) - 2) / (16 * busy * servers)
    constant = (1 + min(apart, 1.0)) / 2
    spread = held.scv + (1 - held.scv) * constant
    scale_s = held.mean_s / (servers - load * (1 - relief))
    return wait_ratio(servers, load, peakedness) * scale_s * spread


def even_variance(load: float) -> float:
    """Return the variance of what one balancer has in flight at one pod when it evens that out.

    It takes the better of two pods drawn at random, as `LEAST_REQUEST` does, and sees only its own
    calls. With few in flight this hardly evens: variance = load, as by chance. With many, the
    fractions `s` of pods with at least `k` calls obey `s(k) = s(k−1)²`: a spread of fixed width, a
    Gumbel one in base 2 with the variance `(π²/6) / ln²2 = 3.42`. In between this is a fit, within
    two per cent, to the fixed point of `λ (s(k−1)² − s(k)²) = k (s(k) − s(k+1))`: Vvedenskaya,
    Dobrushin, Karpelevich (1996) and Mitzenmacher (2001), here with a server for every call.

    Args:
        load: calls in flight of one balancer at one pod, on average, 0 or more.
    """
    return load / (1 + load / _EVEN_VARIANCE + _EVEN_FIT * load / (1 + load))


def pod_variance(loads: list[tuple[float, int]], pods: int) -> float:
    """Return the variance of the calls in flight at one of equal pods.

    Each caller evens out its own calls, and callers know nothing of each other, so their variances
    add up; what all pods share, that altogether more or fewer calls are there, comes on top:
    `V = Σ R · v(L / (R·N)) + L / N²`. Never above the mean, which is chance alone.

    Args:
        loads: for each kind of caller, the calls in flight of all of them, and how many they are.
        pods: the pods, 1 or more.
    """
    total = sum(load for load, _ in loads)
    own = sum(count * even_variance(load / count / pods) for load, count in loads)
    return min(total / pods, own + total / pods**2)


def part_variance(load: float, part: float, variance: float) -> float:
    """Return the variance of those calls of a pod that are in one state: `a p (1 − p) + p² V`.

    Each call of the pod is in that state with the probability `p`, whatever the others are in: a
    binomial number of a random number (law of total variance).

    Args:
        load: calls in flight at the pod, on average.
        part: the part of them in that state, 0–1.
        variance: the variance of the calls in flight at the pod.
    """
    return load * part * (1 - part) + part**2 * variance


def p99(load: float, variance: float) -> int:
    """Return how many calls are in flight in all but one of a hundred moments.

    Cornish–Fisher with the skewness of a Poisson spread, scaled: `a + z√V + (z² − 1)/6 · V/a`.
    Exact to a call for a Poisson one from 0.3 to several hundred.

    Args:
        load: calls in flight on average, 0 or more.
        variance: their variance.
    """
    if load <= 0:
        return 0
    return round(load + Z99 * math.sqrt(variance) + (Z99**2 - 1) / 6 * variance / load)
