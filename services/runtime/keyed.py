"""Keeps one state for each key, for a bounded number of keys."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

StateT = TypeVar("StateT")

MAX_KEYS = 256
"""Enough for every tool and model of a platform; keys come from declarations, not from users."""
MAX_SPARED = 16
"""How many states that want to stay are passed over before one of them has to go."""


class Keyed(Generic[StateT]):
    """Makes the state of a key when it is first asked for, and drops the least recently used."""

    def __init__(
        self,
        make: Callable[[str], StateT],
        *,
        max_keys: int = MAX_KEYS,
        spare: Callable[[StateT], bool] | None = None,
    ) -> None:
        """Take how a state is made.

        Args:
            make: returns the state of a new key.
            max_keys: how many are kept.
            spare: tells the states that are better kept than others of their age.
        """
        self._make = make
        self._max_keys = max_keys
        self._spare = spare
        self._states: OrderedDict[str, StateT] = OrderedDict()
        self.find: Callable[[str], StateT | None] = self._states.get
        """Returns the state of a key that has one; it does not count as used."""
        self.known: Callable[[str], StateT | None] = self._states.get
        """Returns the state of a key that has one, at the least cost; it counts as used."""

    def __len__(self) -> int:
        """Return how many states there are."""
        return len(self._states)

    def __iter__(self) -> Iterator[str]:
        """Yield the keys, the least recently used first."""
        return iter(list(self._states))

    def items(self) -> list[tuple[str, StateT]]:
        """Return the keys with their states, the least recently used first."""
        return list(self._states.items())

    def values(self) -> list[StateT]:
        """Return the states, the least recently used first."""
        return list(self._states.values())

    def of(self, key: str) -> StateT:
        """Return the state of a key; it counts as used."""
        state = self.known(key)
        if state is None:
            state = self._make(key)
            while len(self._states) >= self._max_keys:
                self._drop_one()
            self._states[key] = state
            self._mind_age()
        return state

    def resize(self, max_keys: int) -> None:
        """Keep so many from now on; what is too many goes when the next key comes."""
        self._max_keys = max_keys
        self._mind_age()

    def _mind_age(self) -> None:
        # Nobody has to go for a long time yet before that, and most never get there.
        crowded = 2 * len(self._states) > self._max_keys
        self.known = self._used if crowded else self.find

    def _used(self, key: str) -> StateT | None:
        state = self._states.get(key)
        if state is not None:
            self._states.move_to_end(key)
        return state

    def _drop_one(self) -> None:
        victim = next(iter(self._states))
        if self._spare is not None:
            for passed, key in enumerate(self._states):
                if passed >= MAX_SPARED:
                    break
                if not self._spare(self._states[key]):
                    victim = key
                    break
        del self._states[victim]
