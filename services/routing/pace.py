"""Measures how long runs take as a rule, and how far those under way are beyond that."""

import math

FLOOR_S = 0.05
"""Shorter lengths count as this: what a busy machine adds by chance is no difference."""
_MEMORY = 20
"""How many of the latest lengths count."""


def ratio_of(length_s: float, usual_s: float) -> float:
    """Return how many times as long as usual something takes; both not below the floor."""
    return max(length_s, FLOOR_S) / max(usual_s, FLOOR_S)


class Usual:
    """Knows the usual length: the geometric mean of the latest ones.

    Lengths of answers have long tails: one that takes a hundred times as long as the others moves
    this as far as two that take ten times as long.
    """

    __slots__ = ("_count", "_log")

    def __init__(self) -> None:
        """Start with nothing known."""
        self._count = 0
        self._log = 0.0

    @property
    def length_s(self) -> float | None:
        """Return the usual length; None while none is known."""
        return math.exp(self._log) if self._count else None

    def add(self, length_s: float) -> None:
        """Take a length."""
        self._count = min(self._count + 1, _MEMORY)
        self._log += (math.log(max(length_s, FLOOR_S)) - self._log) / self._count


class Underway:
    """Sums up how far runs are that have not come to something yet.

    The age of a run counts in units of what it usually takes. A run that was overtaken, by one that
    began later and came to it, says nothing about others: they get through. So a single long run
    accuses nobody, and when nothing gets through any more all that began since speak.
    """

    __slots__ = ("_begun", "_overtaken_at", "_rates", "_starts")

    def __init__(self) -> None:
        """Start with nothing under way."""
        # In the order of their starts: when a run began, and one by what it usually takes.
        self._begun: dict[int, tuple[float, float]] = {}
        self._overtaken_at = -math.inf
        self._rates = 0.0
        self._starts = 0.0

    def begin(self, key: int, now: float, usual_s: float) -> None:
        """Take a run that begins now."""
        rate = 1 / max(usual_s, FLOOR_S)
        self._begun[key] = (now, rate)
        self._rates += rate
        self._starts += now * rate

    def leave(self, key: int) -> None:
        """Forget a run that ended otherwise; one that was overtaken is forgotten already."""
        begun = self._begun.pop(key, None)
        if begun is not None:
            self._drop(*begun)

    def arrive(self, key: int, began_at: float) -> None:
        """Forget a run that has come to it, and those that it has overtaken."""
        self.leave(key)
        if began_at <= self._overtaken_at:
            return
        self._overtaken_at = began_at
        while self._begun:
            first = next(iter(self._begun))
            if self._begun[first][0] > began_at:
                return
            self._drop(*self._begun.pop(first))

    def ratio(self, now: float) -> float:
        """Return the mean age, in units of what each usually takes; 0 when nothing is under way."""
        if not self._begun:
            return 0.0
        return max(0.0, (now * self._rates - self._starts) / len(self._begun))

    def _drop(self, began_at: float, rate: float) -> None:
        self._rates -= rate
        self._starts -= began_at * rate
        if not self._begun:
            # What subtracting leaves behind of a sum of nothing is no age.
            self._rates = self._starts = 0.0
