"""Holds a text that was cut off to the limit that cut it, and to whose limit that was."""

import pytest

from sixhop.model.v1 import model_pb2
from tests.integration.model.test_hop import USER, chain, collect
from tests.requirements import requirement

OBEDIENT = "normal?token_count=1000&chunk_interval_s=0&obeys_max_tokens=1"


@requirement("run:whose-limit")
@pytest.mark.parametrize(
    ("behaviour", "asked", "limit"),
    [
        (OBEDIENT, 20, (20, "caller")),
        (OBEDIENT, 0, (30, "settings")),
        (OBEDIENT, 50, (30, "settings")),
        # It writes ten tokens, and says that this is as long as it may be.
        ("length", 20, (10, "provider")),
        ("normal", 20, (0, "")),
    ],
)
async def test_a_text_that_was_cut_off_says_at_whose_limit(
    behaviour: str, asked: int, limit: tuple[int, str]
) -> None:
    request = model_pb2.GenerateRequest(messages=[USER], max_output_tokens=asked)
    async with chain(behaviour, MODEL__MAX_OUTPUT_TOKENS="30") as running:
        finished = (await collect(running.stub, request))[-1].finished

    assert (finished.limit_token_count, finished.limited_by) == limit
