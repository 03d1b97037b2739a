"""Tests the pauses between the lives of a process."""

import random

import pytest

from gateway.backoff import Backoff, BackoffConfig

EXACT = BackoffConfig(jitter_ratio=0.0)


def test_pauses_double_up_to_the_longest() -> None:
    backoff = Backoff(EXACT, random.Random(1))

    pauses = [backoff.pause_s(lived_s=0.1) for _ in range(8)]

    assert pauses == pytest.approx([0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0])


def test_thirty_seconds_of_health_make_the_next_pause_short_again() -> None:
    backoff = Backoff(EXACT, random.Random(1))
    for _ in range(5):
        backoff.pause_s(lived_s=1.0)

    assert backoff.pause_s(lived_s=29.9) == 5.0
    assert backoff.pause_s(lived_s=30.0) == pytest.approx(0.2)
    assert backoff.pause_s(lived_s=0.0) == pytest.approx(0.4)


def test_chance_adds_at_most_its_part_and_a_seed_replays_it() -> None:
    config = BackoffConfig()

    first = [Backoff(config, random.Random(seed)).pause_s(0.0) for seed in range(50)]
    again = [Backoff(config, random.Random(seed)).pause_s(0.0) for seed in range(50)]

    assert first == again
    assert all(0.2 <= pause_s <= 0.25 for pause_s in first)
    assert len(set(first)) > 40


def test_a_process_that_never_lives_does_not_outgrow_numbers() -> None:
    backoff = Backoff(EXACT, random.Random(1))

    assert [backoff.pause_s(0.0) for _ in range(5000)][-1] == 5.0
