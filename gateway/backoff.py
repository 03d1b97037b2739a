"""Computes how long to wait before something that keeps failing is tried again."""

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BackoffConfig:
    """Bounds the pauses; lengths in seconds."""

    initial_s: float = 0.2
    """The first pause: a process that died once comes back before anyone has noticed."""
    max_s: float = 5.0
    """The longest pause, before jitter: whoever repairs the cause does not wait longer."""
    multiplier: float = 2.0
    """How much longer each pause is than the one before."""
    jitter_ratio: float = 0.25
    """The part of a pause that chance may add, so that hops do not come back in step."""
    reset_after_s: float = 30.0
    """Whoever lived this long is taken for healed."""


class Backoff:
    """Counts failures in a row, and says how long to pause after each."""

    def __init__(self, config: BackoffConfig, rng: random.Random) -> None:
        """Take the bounds and the source of chance."""
        self._config = config
        self._rng = rng
        self._failures = 0

    def pause_s(self, lived_s: float) -> float:
        """Return the pause after a failure, given how long it went well before it."""
        config = self._config
        if lived_s >= config.reset_after_s:
            self._failures = 0
        # The exponent is bounded because a float is not.
        grown_s = config.initial_s * config.multiplier ** min(self._failures, 64)
        self._failures += 1
        pause_s = min(config.max_s, grown_s)
        return pause_s * (1 + self._rng.uniform(0, config.jitter_ratio))
