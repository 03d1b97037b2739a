"""Measures how soon and how fast the provider writes, and tells what fits into a time."""

from services.model.backend import Finish, Piece, Reasoning, Text
from services.runtime.aging import AgingLengths
from services.runtime.clock import Clock
from services.runtime.compression.tokens import TokenEstimate
from services.runtime.stream import Wire

WINDOW_S = 60.0
"""How long one generation of measurements is added to: a provider's mood holds for minutes."""
MIN_TOKENS = 8
"""With fewer tokens after the first ones a rate is a guess."""
USUAL_RATIO = 0.5
SURE_RATIO = 0.9
"""What fits is told so that nine of ten answers do: a cut answer is worth less than a short one."""
TRIAL_INTERVAL_S = 5.0
"""When nothing was measured for so long, one answer is tried for which there is no time by what is
known: whoever refuses all of them never learns that the provider is well again."""


class Pace:
    """Knows what the provider took lately. Without measurements it knows nothing, and says so."""

    def __init__(self, clock: Clock) -> None:
        """Start with nothing measured."""
        self._clock = clock
        self._firsts = AgingLengths(WINDOW_S)
        self._intervals = AgingLengths(WINDOW_S)
        self._learned_at = clock.now()

    def note_first(self, length_s: float) -> None:
        """Take the time from the request to the first content."""
        self._learned_at = self._clock.now()
        self._firsts.add(self._learned_at, length_s)

    def note_rate(self, token_count: float, length_s: float) -> None:
        """Take how long the tokens after the first content took; too few of them say nothing."""
        if token_count >= MIN_TOKENS and length_s > 0:
            self._intervals.add(self._clock.now(), length_s / token_count)

    def time_to_first_token_s(self) -> float | None:
        """Return the usual time to the first token; None while too few are known."""
        return self._firsts.percentile(self._clock.now(), USUAL_RATIO)

    def tokens_per_second(self) -> float | None:
        """Return the usual rate once it writes; None while too little is known."""
        interval_s = self._intervals.percentile(self._clock.now(), USUAL_RATIO)
        return 1 / interval_s if interval_s else None

    def tokens_within(self, length_s: float, ratio: float = SURE_RATIO) -> int | None:
        """Return how many tokens this part of the answers has after a time; None when not known."""
        now = self._clock.now()
        first_s = self._firsts.percentile(now, ratio)
        interval_s = self._intervals.percentile(now, ratio)
        if first_s is None or not interval_s:
            return None
        # The first token is there when the rest begins.
        return max(0, int(1 + (length_s - first_s) / interval_s)) if length_s >= first_s else 0

    def try_again(self) -> bool:
        """Tell whether nothing was learned for so long that an answer had better be tried."""
        now = self._clock.now()
        if now < self._learned_at + TRIAL_INTERVAL_S:
            return False
        self._learned_at = now
        return True


class PacedWire:
    """Measures one completion on its way; what it gives is what the wire gives."""

    def __init__(self, wire: Wire[Piece], pace: Pace, clock: Clock, *, asked_at: float) -> None:
        """Take the wire, who learns, and when the request was sent."""
        self._wire = wire
        self._pace = pace
        self._clock = clock
        self._asked_at = asked_at
        self._first_at: float | None = None
        self._last_at = 0.0
        self._first = TokenEstimate()
        self._rest = TokenEstimate()
        self._scale = 1.0
        """The provider's own count of all tokens as a multiple of our estimate."""
        self._told = False

    async def read(self) -> Piece | None:
        """Return the next piece; errors as the wire's."""
        piece = await self._wire.read()
        if isinstance(piece, Finish):
            self._take_usage(piece)
        elif piece is not None:
            self._take(piece)
        return piece

    def cancel(self) -> None:
        """Close the wire; a completion is measured by what it has written until then."""
        if not self._told and self._first_at is not None:
            self._told = True
            length_s = self._last_at - self._first_at
            self._pace.note_rate(self._rest.count * self._scale, length_s)
        self._wire.cancel()

    def _take(self, piece: Piece) -> None:
        self._last_at = self._clock.now()
        written = self._rest
        if self._first_at is None:
            # What comes with it was written before, so it says nothing about the rate.
            written = self._first
            self._first_at = self._last_at
            self._pace.note_first(self._first_at - self._asked_at)
        if isinstance(piece, Text | Reasoning):
            written.add(piece.text)

    def _take_usage(self, finish: Finish) -> None:
        estimated = self._first.count + self._rest.count
        if not finish.usage.estimated and estimated:
            self._scale = finish.usage.output_token_count / estimated
