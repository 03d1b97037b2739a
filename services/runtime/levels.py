"""Divides a limit between the levels of criticality, so that the lowest makes room first."""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

from pydantic import Field

from services.runtime.call import Criticality
from services.runtime.ranges import check_ranges
from services.runtime.setting_text import SettingError
from services.runtime.shares import ShareSnapshot

_STEP_RATIO = 0.02
"""How much of the limit one refusal adds to what is kept free for its level."""
_TARGET_RATIO = 0.005
"""How many of a level's calls may be refused while a lower one is served: one in 200."""
_IDLE_RATIO = 0.33
"""With less of the limit in use nobody needs to be held back."""
_RELAX_S = 20.0
"""How fast everything returns to where it began: two thirds of the way in this time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelRules:
    """Says what part of the limit each level may use to begin with."""

    sheddable_ratio: Annotated[float, Field(gt=0, le=1)] = 0.5
    """For SHEDDABLE: bulk work leaves half free."""
    sheddable_plus_ratio: Annotated[float, Field(gt=0, le=1)] = 0.65
    """For SHEDDABLE_PLUS: half of what lies between its neighbours."""
    critical_ratio: Annotated[float, Field(gt=0, le=1)] = 0.8
    """For CRITICAL; what lies above is there for bursts of CRITICAL_PLUS, which may use all."""

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            SettingError: a ratio is outside of its range, or a lower level has more than a higher.
        """
        check_ranges(self)
        names = ("sheddable_ratio", "sheddable_plus_ratio", "critical_ratio")
        for (name, lower), (above, higher) in pairwise(zip(names, self.ratios(), strict=False)):
            if lower > higher:
                raise SettingError(name, lower, f"write a number up to {above} = {higher:g}")

    def ratios(self) -> tuple[float, float, float, float]:
        """Return the parts, lowest level first."""
        return (self.sheddable_ratio, self.sheddable_plus_ratio, self.critical_ratio, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelSnapshot:
    """Describes one level of criticality."""

    room: int
    """How many calls may be in flight for one more of this level to be let in."""
    share: ShareSnapshot
    """How its tenants share it."""


class Levels:
    """Gives each level its room, the part of the limit that it may fill.

    Fixed parts are wrong for some load: too much kept free wastes places, too little lets the
    highest be refused. So what is kept free for a level against the ones below it moves. A refusal
    of the level adds a fiftieth of the limit; a call of it that is let in while a lower one is held
    back takes a two-hundredth of that away: it settles where one call in 200 is refused. With time
    it returns to its beginning, ready for the next burst.
    """

    def __init__(self, rules: LevelRules) -> None:
        """Take the parts to begin with."""
        self._relaxed_at = -math.inf
        self._began = _steps(rules)
        """For each level, lowest first: what is kept free for it against the one below it."""
        self._kept = list(self._began)
        self.parts: tuple[float, ...] = ()
        """The part of the limit that each level may fill, by its number; of that at most a half is
        kept for fair shares."""
        self._sum_up()

    def reconfigure(self, rules: LevelRules) -> None:
        """Return to these parts from now on; how far each is from its beginning stays."""
        began = _steps(rules)
        self._kept = [
            max(0.0, kept + new - old)
            for kept, new, old in zip(self._kept, began, self._began, strict=True)
        ]
        self._began = began
        self._sum_up()

    def room(self, level: Criticality, limit: int, now: float) -> int:
        """Return how many calls may be in flight for one more of this level to be let in."""
        # In steps of a tenth of a second: nobody can tell, and most calls need not compute.
        if now - self._relaxed_at > 0.1:
            self._approach(1 - math.exp((self._relaxed_at - now) / _RELAX_S))
            self._relaxed_at = now
        return max(1, int(self.parts[level] * limit + 1e-9))

    def note_refused(self, level: Criticality, inflight: int, lower: int, limit: int) -> None:
        """Learn that a level was refused.

        Args:
            level: the level.
            inflight: how many calls are in flight.
            lower: how many of them are of lower levels; without any, nobody can make room.
            limit: how many there may be.
        """
        if inflight < _IDLE_RATIO * limit:
            # So much is free that the pressure must be over.
            self._approach(0.5)
        elif lower:
            self._kept[level - 1] += _STEP_RATIO
            self._sum_up()

    def note_admitted(self, level: Criticality, inflight: int, limit: int) -> None:
        """Learn that a level was let in with so many already in flight."""
        if level > 1 and inflight >= self.parts[level - 1] * limit:
            kept = self._kept[level - 1] - _STEP_RATIO * _TARGET_RATIO
            self._kept[level - 1] = max(0.0, kept)
            self._sum_up()

    def _approach(self, part: float) -> None:
        """Go a part of the way back to the beginning."""
        self._kept = [
            kept + part * (began - kept)
            for kept, began in zip(self._kept, self._began, strict=True)
        ]
        self._sum_up()

    def _sum_up(self) -> None:
        """Set the part of the limit that each level may fill, by its number."""
        _, second, third, fourth = self._kept
        highest_but_one = 1 - fourth
        self.parts = (
            0.0,
            highest_but_one - third - second,
            highest_but_one - third,
            highest_but_one,
            1.0,
        )


def _steps(rules: LevelRules) -> list[float]:
    return [0.0, *(high - low for low, high in pairwise(rules.ratios()))]
