"""Says when a hop that waits for another tells so on its stream."""

from typing import Self

from pydantic import Field, model_validator

from services.runtime.sections import Section
from services.runtime.setting_text import SettingError

MAX_HEARTBEAT_SHARE = 1 / 3
"""A heartbeat comes at least three times within any idle limit."""
NEAR_SHARE = 0.25
"""The part of the time left after which a heartbeat comes at the latest; callers wait for 0.6."""
MIN_INTERVAL_S = 0.05
"""However little is left, heartbeats are no flood."""


class HeartbeatSettings(Section):
    """Says when a hop that waits for another tells so on its stream."""

    first_s: float = Field(default=0.2, gt=0, le=60)
    """The silence after which the first one comes, seconds; a person takes a fifth of a second
    for at once."""
    interval_s: float = Field(default=1.0, gt=0, le=60)
    """How far apart they are, seconds; a person wants to see that something moves, and each costs
    every hop on its way."""

    @model_validator(mode="after")
    def _first_is_soon(self) -> Self:
        if self.first_s > self.interval_s:
            advice = f"write a number up to interval_s = {self.interval_s:g}"
            raise SettingError("first_s", self.first_s, advice)
        return self

    def interval_near_s(self, left_s: float) -> float:
        """Return the time to the next heartbeat: well inside what the caller waits for an event.

        The caller waits at most its share of what is left, which near a deadline is little.
        """
        return max(MIN_INTERVAL_S, min(self.interval_s, NEAR_SHARE * left_s))
