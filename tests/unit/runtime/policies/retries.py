"""Makes drivers of retries, and counts what they send."""

import random

import pytest

from services.runtime.call import Call
from services.runtime.errors import SixhopError
from services.runtime.policies.retry import Retry, RetryConfig
from tests.unit.runtime.fake_time import LoopClock
from tests.unit.runtime.policies.client_samples import script

NO_JITTER = RetryConfig(jitter_ratio=0.0)


def retry(clock: LoopClock, config: RetryConfig = NO_JITTER, *, closed: bool = True) -> Retry:
    """Return a driver whose breakers are all closed, or all open."""
    return Retry(config, clock, random.Random(7), lambda key: closed)


async def attempts_of(driver: Retry, call: Call, clock: LoopClock, error: SixhopError) -> int:
    """Return how many attempts are made of a call that always fails so."""
    attempt, starts = script(clock, (0.1, error))
    with pytest.raises(SixhopError):
        await driver(call, attempt)
    return len(starts)
