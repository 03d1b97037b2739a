"""Tests that a hop says by whom its event loop was held up."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from services.runtime.durations import to_seconds
from services.runtime.topology import TOOL
from tests.e2e.client import Client, open_client
from tests.e2e.suite import Suite, TimeLimitError, running_suite
from tests.requirements import requirement

LENGTH_S = 2.5
"""Long enough for any place in it at which a timer is due."""


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """Return a suite with the engine on."""
    folder = tmp_path_factory.mktemp("held")
    with running_suite(folder, SIXHOP_ENGINE__ENABLED="true") as started:
        yield started


@requirement("fitness:held-loop-is-told")
@pytest.mark.parametrize("computes", [False, True], ids=["sleeps", "computes"])
async def test_a_tool_that_blocks_its_hop_is_named_with_its_line(
    suite: Suite, computes: bool
) -> None:
    async with open_client(suite) as client:
        await client.warm()
        arguments = json.dumps({"length_s": LENGTH_S, "computes": computes})
        line = await held_line(suite, client, arguments)
        loop = (await client.snapshot(TOOL)).event_loop

    told = (line["method"], line["note"], Path(line["where"].partition(":")[0]).name)
    assert told == ("ExecuteTool", "blocker", "blocker.py")
    assert line["held_s"] >= LENGTH_S - 1.0
    assert "blocker at blocker.py:" in loop.held_by
    assert to_seconds(loop.held_duration) >= LENGTH_S - 1.0


async def held_line(suite: Suite, client: Client, arguments: str) -> dict[str, Any]:
    """Return what the hop logs of a run that holds its loop up.

    A machine that gave the hop no time meanwhile has stopped it, which is another thing; so it may
    take a second or a third run.
    """
    for _ in range(2):
        run = await client.run(f"blocker {arguments}", agent="probe_tool", deadline_s=30.0).end()
        with suppress(TimeLimitError):
            return await suite.line(TOOL, run.run_id, "loop_held")
    run = await client.run(f"blocker {arguments}", agent="probe_tool", deadline_s=30.0).end()
    return await suite.line(TOOL, run.run_id, "loop_held")
