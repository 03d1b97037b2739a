"""Holds a rule that may be wrong to refusing a part of all calls."""


class RejectTokens:
    """Holds a rule to refusing a part of all calls: of `n` in a row, `ratio · n + burst` at most.

    Every call that the rule looks at puts a part of a token in; only a refusal takes one out.
    """

    __slots__ = ("_cap", "_share", "_tokens", "looked")

    def __init__(self, ratio: float, burst: int = 1) -> None:
        """Take the part, between 0 and 1, and how many refusals may be saved up."""
        self.looked = 0
        """How many calls the rule has looked at since tokens were counted: whoever asks it about
        a call adds one, refused or not. No method, because every call comes here."""
        self._tokens = self._share = self._cap = 0
        self.reconfigure(ratio, burst)
        self._tokens = self._cap - 1000

    def reconfigure(self, ratio: float, burst: int = 1) -> None:
        """Change the part and the burst; what was saved up stays, as far as it may."""
        self._count()
        # Whole numbers: a thousandth of a token at a time adds up exactly.
        self._share = round(1000 * ratio)
        self._cap = 1000 * burst + self._share

    def try_refuse(self) -> bool:
        """Take a token; False says that this one has to pass."""
        self._count()
        if self._tokens < 1000:
            return False
        self._tokens -= 1000
        return True

    def _count(self) -> None:
        # As if each had come by itself: between two refusals tokens only grow.
        self._tokens = min(self._cap, self._tokens + self.looked * self._share)
        self.looked = 0
