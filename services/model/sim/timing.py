"""Draws how long first tokens and further tokens take."""

import math
import random
from dataclasses import dataclass

from services.model.sim.config import SimSettings
from services.model.sim.faults import Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Holds the distributions. Medians are seconds; a sigma is the deviation of the logarithm."""

    ttft_median_s: float
    ttft_sigma: float
    prefill_s_per_1k: float
    token_median_s: float
    token_sigma: float
    load_slowdown: float

    @classmethod
    def of(cls, settings: SimSettings) -> "Timing":
        """Return what the settings say."""
        return cls(**{name: getattr(settings, name) for name in cls.__slots__})

    def slowdown(self, inflight: int, limit: int) -> float:
        """Return the factor of every time while so many requests of so many are worked on.

        One request alone is at full pace, so that a quiet simulator keeps its medians.
        """
        load = (inflight - 1) / (limit - 1) if limit > 1 else 0.0
        return 1.0 + self.load_slowdown * min(1.0, max(0.0, load))


class Pace:
    """Draws the times of one answer, always the same for the same random generator.

    A time is median · exp(sigma · N(0, 1)): lognormal, as latencies of inference are.
    """

    def __init__(self, timing: Timing, fault: Fault, rng: random.Random) -> None:
        """Take the distributions, what a fault changes, and where chance comes from."""
        self._timing = timing
        self._fault = fault
        self._rng = rng

    def first_token_s(self, prompt_tokens: int, factor: float = 1.0) -> float:
        """Return the time to the first token; the factor is the load's."""
        drawn_s = self._lognormal(self._timing.ttft_median_s, self._timing.ttft_sigma)
        if self._fault.first_token_after_s >= 0:
            return self._fault.first_token_after_s
        prefill_s = self._timing.prefill_s_per_1k * prompt_tokens / 1000
        return (drawn_s + prefill_s) * self._fault.slowdown * factor

    def token_interval_s(self, factor: float = 1.0) -> float:
        """Return the time from one token to the next; the factor is the load's."""
        drawn_s = self._lognormal(self._timing.token_median_s, self._timing.token_sigma)
        if self._fault.token_interval_s >= 0:
            return self._fault.token_interval_s
        return drawn_s * self._fault.slowdown * factor

    def _lognormal(self, median_s: float, sigma: float) -> float:
        # Drawn in any case, so that a knob that fixes one time changes no other.
        noise = self._rng.gauss(0.0, 1.0)
        return median_s * math.exp(sigma * noise)
