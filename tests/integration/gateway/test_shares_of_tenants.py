"""Holds started runs and readers of events to what each tenant may have of them, over HTTP."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from services.domain.agent import Answer
from services.domain.run import Run
from tests.e2e.tenants.asking import put_key
from tests.integration.gateway.doors import Door, open_door
from tests.requirements import requirement


async def started(door: Door, key: str) -> tuple[int, Any]:
    """Start a run; return the status and the JSON."""
    ask = {"question": "hello", "agent": "chat"}
    headers = {"authorization": f"Bearer {key}"}
    async with door.http.post("/v1/runs", json=ask, headers=headers) as answer:
        return answer.status, await answer.json()


async def reading(stack: AsyncExitStack, door: Door, key: str, run: Any) -> tuple[int, Any]:
    """Read the events of a run until the stack is left; return the status, and an error."""
    headers = {"authorization": f"Bearer {key}"}
    answer = await stack.enter_async_context(door.http.get(run["links"]["events"], headers=headers))
    return answer.status, await answer.json() if answer.status != 200 else None


@requirement("tenants:own-share")
async def test_a_tenant_leaves_started_runs_and_readers_to_the_others(tmp_path: Path) -> None:
    async def wait_for_ever(run: Run) -> Answer:
        await asyncio.Event().wait()
        raise AssertionError("nobody lets it go on")

    keys = tmp_path / "keys.json"
    acme, globex = (put_key(keys, tenant) for tenant in ("acme", "globex"))
    settings = {
        "GATEWAY__KEYS_FILE": str(keys),
        "GATEWAY__RUNS__MAX_STARTED_COUNT": "4",
        "GATEWAY__RUNS__MAX_READER_COUNT": "4",
    }
    async with open_door(**settings) as door, AsyncExitStack() as stack:
        door.suite.agent = wait_for_ever
        runs = [await started(door, key) for key in (acme, acme, globex)]
        read = [
            await reading(stack, door, key, run)
            for key, run in ((acme, runs[0][1]), (acme, runs[0][1]), (globex, runs[2][1]))
        ]

    for answers, setting in ((runs, "max_started_count"), (read, "max_reader_count")):
        (_, _), (refused, told), (_, _) = answers
        assert (refused, told["error"]["reason"]) == (429, "QUOTA_EXCEEDED")
        assert told["error"]["cause"] == setting
        assert f"gateway.runs.{setting} is 4" in told["error"]["message"]
    assert (runs[0][0], runs[2][0], read[0][0], read[2][0]) == (202, 202, 200, 200)
