"""Tests what is kept and for how long."""

import threading

import pytest

from services.tool.cache import BoundedCache


def test_a_result_is_built_once() -> None:
    cache, built = BoundedCache(2), iter(("first", "second"))

    assert [cache.get("a", lambda: next(built)) for _ in range(3)] == ["first"] * 3


def test_the_least_recently_used_result_goes_first() -> None:
    cache = BoundedCache(2)
    cache.get("a", lambda: 1)
    cache.get("b", lambda: 2)
    cache.get("a", lambda: 1)
    cache.get("c", lambda: 3)

    assert cache.get("a", lambda: 10) == 1
    assert cache.get("b", lambda: 20) == 20


def test_a_failure_is_not_kept() -> None:
    cache = BoundedCache(2)

    def fail() -> int:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        cache.get("a", fail)

    assert cache.get("a", lambda: 5) == 5


def test_two_threads_that_need_the_same_result_build_it_once() -> None:
    cache, building, go, built = BoundedCache(2), threading.Event(), threading.Event(), []

    def slow() -> str:
        building.set()
        assert go.wait(5)
        built.append(1)
        return "value"

    results: list[str] = []
    threads = [
        threading.Thread(target=lambda: results.append(cache.get("a", slow))) for _ in range(2)
    ]
    threads[0].start()
    assert building.wait(5)
    threads[1].start()
    go.set()
    for thread in threads:
        thread.join(5)

    assert results == ["value", "value"]
    assert len(built) == 1
