"""Holds the states of keys to their bound."""

from services.runtime.keyed import MAX_SPARED, Keyed


def test_a_state_is_made_once() -> None:
    made: list[str] = []
    keyed = Keyed(lambda key: made.append(key) or [key])  # type: ignore[func-returns-value]

    assert keyed.of("a") is keyed.of("a")
    assert made == ["a"]


def test_looking_makes_nothing() -> None:
    keyed = Keyed(str.upper)

    assert keyed.find("a") is None
    assert len(keyed) == 0


def test_the_least_recently_used_goes_first() -> None:
    keyed = Keyed(str.upper, max_keys=2)
    for key in ("a", "b", "a", "c"):
        keyed.of(key)

    assert list(keyed) == ["a", "c"]


def test_what_is_known_counts_as_used_when_it_is_asked_for() -> None:
    keyed = Keyed(str.upper, max_keys=2)
    unknown = keyed.known("a")
    for key in ("a", "b"):
        keyed.of(key)
    found = keyed.known("a")
    keyed.of("c")

    assert (unknown, found) == (None, "A")
    assert list(keyed) == ["a", "c"]


def test_with_fewer_places_who_was_used_is_minded_at_once() -> None:
    keyed = Keyed(str.upper, max_keys=10)
    for key in ("a", "b"):
        keyed.of(key)
    keyed.resize(2)
    keyed.known("a")
    keyed.of("c")

    assert list(keyed) == ["a", "c"]


def test_a_state_that_is_worth_it_is_passed_over() -> None:
    keyed = Keyed(str.upper, max_keys=2, spare=lambda state: state == "A")
    for key in ("a", "b", "c", "d"):
        keyed.of(key)

    assert list(keyed) == ["a", "d"]


def test_when_all_are_worth_it_the_oldest_goes() -> None:
    keyed = Keyed(str.upper, max_keys=MAX_SPARED + 5, spare=lambda state: True)
    for number in range(MAX_SPARED + 6):
        keyed.of(str(number))

    assert len(keyed) == MAX_SPARED + 5
    assert keyed.find("0") is None
