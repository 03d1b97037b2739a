"""Holds the runs of a tenant to itself, and to the operator who names it."""

from pathlib import Path
from typing import Any

import pytest

from services.runtime.orders import OPERATOR_KEY
from tests.e2e.tenants.asking import put_key
from tests.integration.gateway.doors import Door, open_door
from tests.requirements import requirement

OPERATOR = "open-sesame-4711"


async def said(door: Door, path: str, **headers: str) -> tuple[int, Any]:
    """Return the status and the JSON of an answer."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with door.http.get(path, headers=named) as answer:
        return answer.status, await answer.json()


@requirement("page:runs")
@pytest.mark.parametrize(("operator", "status"), [("", 403), ("sesame", 403), (OPERATOR, 200)])
async def test_another_tenants_runs_are_the_operators_to_see(
    tmp_path: Path, operator: str, status: int
) -> None:
    keys = tmp_path / "keys.json"
    acme, globex = (f"Bearer {put_key(keys, tenant)}" for tenant in ("acme", "globex"))
    more = {OPERATOR_KEY.replace("-", "_"): operator} if operator else {}
    async with open_door(GATEWAY__KEYS_FILE=str(keys), OPERATOR__KEY=OPERATOR) as door:
        ask = {"model": "chat", "messages": [{"role": "user", "content": "hello"}]}
        headers = {"authorization": globex}
        async with door.http.post("/v1/chat/completions", json=ask, headers=headers) as asked:
            run = asked.headers["x-sixhop-run-id"]
        own = await said(door, "/v1/runs", authorization=acme, **more)
        listed = await said(door, "/v1/runs?tenant=globex", authorization=acme, **more)
        named = await said(door, f"/v1/runs/{run}?tenant=globex", authorization=acme, **more)
        unnamed = await said(door, f"/v1/runs/{run}", authorization=acme, **more)
        # The key of an operator is no tenant's.
        nobody = await said(door, "/v1/runs?tenant=globex", **more)

    assert (own[0], own[1]["data"]) == (200, [])
    assert (listed[0], named[0], unnamed[0], nobody[0]) == (status, status, 404, 401)
    if status == 200:
        assert [each["id"] for each in listed[1]["data"]] == [run]
        assert named[1]["tenant"] == "globex"
