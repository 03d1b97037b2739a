"""Holds the runs of one tenant to being nobody else's to see or to end."""

import asyncio

import pytest

from services.runtime.topology import GATEWAY
from tests.e2e.tenants.asking import DOORS, Asker, Door
from tests.e2e.tenants.house import House
from tests.e2e.watching import watching
from tests.requirements import requirement

pytestmark = requirement("runs:own-tenant")

WAYS = [("GET", ""), ("GET", "/events"), ("GET", "/artifacts/a.pdf"), ("DELETE", "")]
"""What can be asked of a run."""


@pytest.mark.parametrize("door", DOORS)
async def test_a_run_is_its_own_tenants_whichever_door_it_came_by(
    house: House, asker: Asker, door: Door
) -> None:
    told = await asker.ask(door, house.key("acme"))
    path = f"/v1/runs/{told.run_id}"

    async with (
        watching(house.suite.url, house.key("acme")) as mine,
        watching(house.suite.url, house.key("humble")) as other,
        watching(house.suite.url) as nobody,
    ):
        run = await mine.get(path)
        ids = [each["id"] for each in (await mine.get("/v1/runs?tenant=acme"))["data"]]
        others = (await other.get("/v1/runs"))["data"]
        hidden = [(await other.ask(method, path + tail))[0] for method, tail in WAYS]
        unknown = [(await nobody.ask(method, path + tail))[0] for method, tail in WAYS]
        peeking, _, _ = await other.ask("GET", "/v1/runs?tenant=acme")
        expired, _, _ = await nobody.ask(
            "GET", "/v1/runs", headers={"authorization": f"Bearer {house.key('expired')}"}
        )

    assert (run["tenant"], run["status"]) == ("acme", "ok")
    assert told.run_id in ids
    assert told.run_id not in [each["id"] for each in others]
    assert {each["tenant"] for each in others} <= {"humble"}
    assert hidden == [404] * len(WAYS)
    assert unknown == [401] * len(WAYS)
    assert (peeking, expired) == (403, 401)


@requirement("runs:looks-are-no-runs", "runs:cancelled", "runs:every-door")
async def test_a_used_up_quota_keeps_no_tenant_from_its_run(house: House) -> None:
    house.suite.provider.behave("silent")
    try:
        async with watching(house.suite.url, house.key("narrow")) as watcher:
            path = await watcher.start(agent="probe_stream")
            refused, _, told = await watcher.ask(
                "POST", "/v1/runs", json={"question": "Go.", "agent": "probe_early"}
            )
            live = await watcher.get(path)
            reading = asyncio.create_task(watcher.events(path))
            status, _, _ = await watcher.ask("DELETE", path)
            ended = await reading
            failed = (await watcher.get("/v1/runs?status=failed&limit=1"))["data"][0]
    finally:
        house.suite.provider.behave("at-once")

    assert (refused, told["error"]["cause"]) == (429, "max_concurrent_runs")
    assert (live["status"], status) == ("running", 202)
    assert ended[-1].data["status"] == "cancelled"
    # A run that was refused is kept as well, without its question, which nobody has read.
    assert (failed["id"], failed["error"]["reason"]) == (told["error"]["run_id"], "QUOTA_EXCEEDED")
    assert failed["question"]["char_count"] is None


async def test_keys_stand_in_no_log_and_no_run(house: House) -> None:
    async with watching(house.suite.url, house.key("acme")) as watcher:
        await watcher.events(await watcher.start(agent="probe_early"))
        page = str(await watcher.get("/v1/runs"))
    log = house.suite.child(GATEWAY).log.read_text()

    assert not [secret for secret in house.secrets if secret in page or secret in log]
