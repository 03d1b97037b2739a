"""Leads every call through the guards in their order, at a fraction of what contextlib costs.

A live hop runs this with cold caches, where each object and each coroutine costs several times what
a loop over it shows: so there is one object for each guard and not one for each guarded call, and a
step that has nothing to wait for is a plain call.
"""

from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import ClassVar, Generic, TypeVar

SubjectT = TypeVar("SubjectT")
After = Callable[[SubjectT, BaseException | None], None]


class Guard(Generic[SubjectT]):
    """Guards calls by a step before each of them and a step after it.

    It is one object for all calls, so what it has to know of a call lies in the call.
    """

    __slots__ = ()

    errors_only: ClassVar[bool] = False
    """Whether the step after has nothing to do for a call that ended well."""
    streams_only: ClassVar[bool] = False
    """Whether there is nothing to do for a call that has one answer."""

    def before(self, subject: SubjectT, /) -> Awaitable[None] | None:
        """Do the step before; refuse the call by raising.

        Returns:
            What the call has to wait for before it goes on; None when it need not. A wait that
            raises has refused the call, and undoes by itself what the step has done.
        """

    def after(self, subject: SubjectT, error: BaseException | None, /) -> None:
        """Do the step after; `error` ended the call, and another may be raised in its place.

        A call that was refused here, or further out, never comes to this step.
        """

    def __call__(self, subject: SubjectT, /) -> AbstractAsyncContextManager[None]:
        """Return this guard, around one call."""
        return Guarded(Guards([self]), subject)


class Guards(Generic[SubjectT]):
    """Holds the guards of all calls of one kind, outermost first."""

    __slots__ = ("_afters", "_befores", "_inside", "_well_afters")

    def __init__(self, guards: Iterable[Guard[SubjectT]]) -> None:
        """Take the guards, outermost first."""
        guards = tuple(guards)
        # A step that a guard does not have costs nothing.
        self._befores = [
            (number, guard.before)
            for number, guard in enumerate(guards)
            if type(guard).before is not Guard.before
        ]
        self._inside = [_afters(guards[:number]) for number in range(len(guards))]
        """For each guard: the steps after of those outside of it."""
        self._afters = _afters(guards)
        self._well_afters = [
            (number, guard.after)
            for number, guard in reversed(list(enumerate(guards)))
            if type(guard).after is not Guard.after and not guard.errors_only
        ]
        """Those of a call that ends well, each with the number of its guard."""

    def enter(self, subject: SubjectT) -> Awaitable[None] | None:
        """Do every step before; when one refuses, do the steps after of those outside of it.

        Returns:
            What has to be awaited before the call is let in; None when it is.
        """
        number = 0
        try:
            for number, before in self._befores:
                waiting = before(subject)
                if waiting is not None:
                    return self._enter_rest(subject, number, waiting)
        except BaseException as error:
            _leave(self._inside[number], subject, error)
            raise
        return None

    def leave(self, subject: SubjectT, error: BaseException | None = None) -> None:
        """Do every step after, innermost first; each is shown the error that the last one left.

        Raises:
            BaseException: an error that a guard has put in the place of `error`, or of none. For
                `error` itself the caller has to raise.
        """
        if error is not None:
            _leave(self._afters, subject, error)
            return
        number = 0
        try:
            # Where it stands is asked for below.
            for number, after in self._well_afters:  # noqa: B007
                after(subject, None)
        except BaseException as raised:
            _leave(self._inside[number], subject, raised)
            raise

    async def _enter_rest(
        self, subject: SubjectT, waiting_number: int, waiting: Awaitable[None]
    ) -> None:
        number = waiting_number
        try:
            await waiting
            for number, before in self._befores:
                if number <= waiting_number:
                    continue
                awaited = before(subject)
                if awaited is not None:
                    await awaited
        except BaseException as error:
            _leave(self._inside[number], subject, error)
            raise


def _afters(guards: "tuple[Guard[SubjectT], ...]") -> "list[After[SubjectT]]":
    return [guard.after for guard in reversed(guards) if type(guard).after is not Guard.after]


def _leave(afters: "Iterable[After[SubjectT]]", subject: SubjectT, error: BaseException) -> None:
    shown = error
    for after in afters:
        try:
            after(subject, error)
        except BaseException as raised:  # what leaves one is what the next is shown
            error = raised
    if error is not shown:
        raise error


class Guarded(Generic[SubjectT]):
    """Leads one call through the guards while a block runs."""

    __slots__ = ("_guards", "_subject")

    def __init__(self, guards: Guards[SubjectT], subject: SubjectT) -> None:
        """Take the guards and the call."""
        self._guards = guards
        self._subject = subject

    async def __aenter__(self) -> None:
        """Enter every guard; when one refuses, leave those outside of it."""
        waiting = self._guards.enter(self._subject)
        if waiting is not None:
            await waiting

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave every guard; no error is swallowed."""
        self._guards.leave(self._subject, error)
