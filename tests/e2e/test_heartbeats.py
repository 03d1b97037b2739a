"""Keeps a client waiting for a model, through real processes, and looks at what it is told."""

import grpc
import pytest

from tests.e2e.client import Client
from tests.requirements import requirement

ANSWER = "The provider of the tests says that all is well."


@requirement("heartbeat:reaches-the-client")
@pytest.mark.parametrize(
    ("behaviour", "state"),
    [
        ("at-once?headers_after_s=1.5", "silent"),
        ("at-once?first_chunk_after_s=1.5&keep_alive_interval_s=0.05", "queued"),
    ],
)
async def test_a_client_is_told_what_is_waited_for_and_has_its_answer(
    client: Client, behaviour: str, state: str
) -> None:
    client.suite.provider.behave(behaviour)

    run = await client.run("Go.", agent="probe_stream", deadline_s=20.0).end()

    told = [event.thinking for event in run.events if event.WhichOneof("event") == "thinking"]
    by_model = [thinking for thinking in told if thinking.hop == "model"]
    assert run.code is grpc.StatusCode.OK, run
    assert run.text == ANSWER
    assert state in {thinking.state for thinking in by_model}
    assert all(thinking.silence_duration.ToTimedelta().total_seconds() > 0 for thinking in by_model)
    # One after 0.2 s and one a second later; the domain hop has no need to speak.
    assert 1 <= len(by_model) <= 3
