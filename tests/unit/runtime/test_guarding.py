"""Holds guards to their order, and to showing every error to each of them."""

from collections.abc import Awaitable

import pytest

from services.runtime.guarding import Guard, Guarded, Guards


class Witness(Guard[str]):
    """Is a guard that writes down what it sees."""

    def __init__(self, name: str, log: list[str]) -> None:
        self.name = name
        self.log = log

    def before(self, subject: str) -> Awaitable[None] | None:
        self.log.append(f"{self.name} in")
        return None

    def after(self, subject: str, error: BaseException | None) -> None:
        self.log.append(f"{self.name} {error!r}")


class Waiting(Witness):
    """Is a guard that lets calls wait, and refuses some after their wait."""

    refusal: BaseException | None = None

    def before(self, subject: str) -> Awaitable[None] | None:
        super().before(subject)
        return self._wait()

    async def _wait(self) -> None:
        self.log.append(f"{self.name} waited")
        if self.refusal is not None:
            raise self.refusal


class Refuse(Guard[str]):
    """Is a guard that lets nothing pass."""

    def before(self, subject: str) -> None:
        raise ValueError("refused")


async def fail_inside(*guards: Guard[str]) -> None:
    """Fail in the innermost place."""
    async with Guarded(Guards(guards), "call"):
        raise ValueError("broken")


class Translate(Guard[str]):
    """Is a guard that puts another error in place of any."""

    def after(self, subject: str, error: BaseException | None) -> None:
        if error is not None:
            raise KeyError("translated") from error


class Fail(Guard[str]):
    """Is a guard that fails at the end."""

    def after(self, subject: str, error: BaseException | None) -> None:
        raise KeyError("late")


async def test_guards_are_left_innermost_first() -> None:
    log: list[str] = []

    async with Guarded(Guards([Witness("a", log), Witness("b", log)]), "call"):
        pass

    assert log == ["a in", "b in", "b None", "a None"]


async def test_a_guard_sees_the_error_that_the_one_inside_of_it_left() -> None:
    log: list[str] = []

    with pytest.raises(KeyError, match="translated") as caught:
        await fail_inside(Witness("a", log), Translate(), Witness("b", log))

    assert log[2:] == ["b ValueError('broken')", "a KeyError('translated')"]
    assert isinstance(caught.value.__cause__, ValueError)


async def test_a_refusal_is_seen_by_the_guards_outside_of_it_only() -> None:
    log: list[str] = []

    with pytest.raises(ValueError, match="refused"):
        async with Guarded(Guards([Witness("a", log), Refuse(), Witness("b", log)]), "call"):
            log.append("inside")

    assert log == ["a in", "a ValueError('refused')"]


async def test_a_refusal_can_be_translated_by_a_guard_outside_of_it() -> None:
    with pytest.raises(KeyError, match="translated"):
        async with Guarded(Guards([Translate(), Refuse()]), "call"):
            pass


async def test_a_call_that_waits_is_let_in_by_the_guards_behind_the_wait_afterwards() -> None:
    log: list[str] = []
    guards = Guards([Witness("a", log), Waiting("b", log), Waiting("c", log), Witness("d", log)])

    async with Guarded(guards, "call"):
        log.append("inside")

    entered = ["a in", "b in", "b waited", "c in", "c waited", "d in", "inside"]
    assert log == [*entered, "d None", "c None", "b None", "a None"]


@pytest.mark.parametrize("number", [1, 2])
async def test_a_wait_that_refuses_is_seen_by_the_guards_outside_of_it_only(number: int) -> None:
    log: list[str] = []
    waiting = [Waiting("b", log), Waiting("c", log)]
    waiting[number - 1].refusal = ValueError("full")

    with pytest.raises(ValueError, match="full"):
        async with Guarded(Guards([Witness("a", log), *waiting]), "call"):
            log.append("inside")

    left = [entry for entry in log if "ValueError" in entry]
    assert left == ["b ValueError('full')", "a ValueError('full')"][2 - number :]


async def test_a_guard_that_fails_at_the_end_does_not_keep_the_others_from_ending() -> None:
    log: list[str] = []

    with pytest.raises(KeyError, match="late"):
        async with Guarded(Guards([Witness("a", log), Fail(), Witness("b", log)]), "call"):
            pass

    assert log[2:] == ["b None", "a KeyError('late')"]


async def test_no_guard_can_swallow_an_error() -> None:
    with pytest.raises(ValueError, match="broken"):
        await fail_inside(Witness("a", []))


async def test_one_guard_is_an_async_context_manager_of_a_call() -> None:
    log: list[str] = []

    async with Witness("a", log)("call"):
        log.append("inside")

    assert log == ["a in", "inside", "a None"]


async def test_a_guard_for_errors_alone_sees_those_that_come_of_a_good_end() -> None:
    log: list[str] = []

    class OnlyErrors(Witness):
        errors_only = True

    async with Guarded(Guards([OnlyErrors("a", log), Witness("b", log)]), "call"):
        pass
    with pytest.raises(KeyError, match="late"):
        async with Guarded(Guards([OnlyErrors("c", log), Fail()]), "call"):
            pass

    assert log == ["a in", "b in", "b None", "c in", "c KeyError('late')"]
