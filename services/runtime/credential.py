"""Remembers whose a credential is, so that one request is not looked at twice."""

import math
from collections.abc import Awaitable, Callable

from services.runtime.clock import Clock
from services.runtime.errors import CallerError

Authenticate = Callable[[str, float], Awaitable[str]]
"""Returns the tenant that a credential stands for, waiting so many seconds at most for whatever it
needs to know; raises UnauthenticatedError or PermissionDeniedError for one that stands for none."""
KNOWN_FOR_S = 1.0
"""How long what was found holds: a body that comes slowly must not outlive a key or a token."""


class Credential:
    """Is what the caller of one request shows to be known by."""

    __slots__ = ("_known_until", "_refusal", "_tenant", "_text")

    def __init__(self, text: str = "") -> None:
        """Take it as it came; empty when nothing did."""
        self._text = text
        self._tenant = ""
        self._refusal: CallerError | None = None
        self._known_until = -math.inf

    def known(self, now: float) -> str | None:
        """Return whose it is when that has been found out a moment ago; else None."""
        return self._tenant if now < self._known_until and self._refusal is None else None

    async def tenant(self, authenticate: Authenticate, within_s: float, clock: Clock) -> str:
        """Return whose it is; asks only when that is not known already.

        Raises:
            SixhopError: as `authenticate` does.
        """
        if clock.now() >= self._known_until:
            self._refusal = None
            try:
                self._tenant = await authenticate(self._text, within_s)
            except CallerError as error:
                # Whatever else went wrong may be right again when it is asked next.
                self._refusal = error
            self._known_until = clock.now() + KNOWN_FOR_S
        if self._refusal is not None:
            raise self._refusal
        return self._tenant
