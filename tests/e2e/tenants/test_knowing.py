"""Holds both doors to knowing whose call it is."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from services.runtime.client import open_channel
from services.runtime.topology import GATEWAY
from sixhop.runtime.v1 import runtime_pb2
from sixhop.runtime.v1.runtime_pb2_grpc import RuntimeServiceStub
from tests.e2e.cli import CommandLine
from tests.e2e.suite import WAIT_S, eventually
from tests.e2e.tenants.asking import DOORS, Asker, Door, ask_until
from tests.e2e.tenants.house import House
from tests.requirements import requirement


@requirement("tenants:identified")
@pytest.mark.parametrize("door", DOORS)
async def test_a_call_is_its_keys_tenants_at_every_hop(
    house: House, asker: Asker, door: Door
) -> None:
    told = await asker.ask(door, house.key("acme"), agent="probe_six")

    assert told.code == "OK", told
    for hop in house.suite.hops:
        line = await house.suite.line(hop, told.run_id, "call_ended")
        assert line["tenant"] == "acme"


@requirement("tenants:identified")
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    ("kind", "cause"),
    [
        ("none", "no_key"),
        ("foreign", "unreadable_token"),
        ("unknown", "unknown_key"),
        ("wrong", "unknown_key"),
        ("expired", "expired_key"),
        ("revoked", "revoked_key"),
    ],
)
async def test_without_a_right_key_nobody_comes_in(
    house: House, asker: Asker, door: Door, kind: str, cause: str
) -> None:
    right = house.key("acme")
    shown = {
        "none": None,
        "foreign": "sk-of-another-house",
        "unknown": f"sk-sixhop-{'0' * 12}-{right.rpartition('-')[2]}",
        "wrong": right[:-4] + "0000",
        "expired": house.key("expired"),
        "revoked": house.key("revoked"),
    }[kind]

    told = await asker.ask(door, shown)

    assert (told.code, told.cause) == ("UNAUTHENTICATED", cause)
    assert told.status == (401 if door == "http" else 200)
    assert "key" in told.message or "token" in told.message


@requirement("tenants:one-way-for-wrong-keys")
async def test_a_wrong_secret_and_an_unknown_id_are_told_the_same(
    house: House, asker: Asker
) -> None:
    right = house.key("acme")

    told = [
        await asker.ask("http", wrong)
        for wrong in (right[:-1] + ("0" if right[-1] != "0" else "1"), right.replace("-", "_"))
    ]
    told += [await asker.ask("http", f"sk-sixhop-{'0' * 12}-{right.rpartition('-')[2]}")]

    assert len({(each.status, each.code) for each in told}) == 1
    assert (told[0].message, told[0].cause) == (told[2].message, told[2].cause)


@requirement("tenants:tokens")
@pytest.mark.parametrize("door", DOORS)
async def test_a_token_is_its_claims_tenants(house: House, asker: Asker, door: Door) -> None:
    told = await asker.ask(door, house.token(tenant="humble"))

    assert told.code == "OK", told
    line = await house.suite.line(GATEWAY, told.run_id, "call_ended")
    assert line["tenant"] == "humble"


@requirement("tenants:tokens")
@pytest.mark.parametrize(
    ("claims", "code", "cause"),
    [
        ({"exp": 1_700_000_000}, "UNAUTHENTICATED", "expired_token"),
        ({"aud": "another"}, "UNAUTHENTICATED", "wrong_audience"),
        ({"tenant": None}, "PERMISSION_DENIED", "no_tenant"),
    ],
)
async def test_a_token_that_is_not_for_here_opens_nothing(
    house: House, asker: Asker, claims: Mapping[str, object], code: str, cause: str
) -> None:
    for door in DOORS:
        told = await asker.ask(door, house.token(**claims))

        assert (told.code, told.cause) == (code, cause)
        if door == "http":
            assert told.status == (401 if code == "UNAUTHENTICATED" else 403)


@requirement("tenants:revoked-at-once")
@requirement("tenants:keys-shown-once")
async def test_a_key_that_the_command_makes_opens_until_the_command_revokes_it(
    house: House, asker: Asker, tmp_path: Path
) -> None:
    command = CommandLine(tmp_path, SIXHOP_GATEWAY__KEYS_FILE=str(house.keys_file))
    made = await asyncio.to_thread(
        command.run, "key", "create", "--tenant", "acme", "--name", "ci", "--json"
    )
    key, key_id = made.document["key"], made.document["id"]
    house.secrets.append(key.rpartition("-")[2])
    await ask_until(asker, key, "OK")

    listed = await asyncio.to_thread(command.run, "key", "list", "--json")
    assert key.rpartition("-")[2] not in listed.out
    assert {"id": key_id, "tenant": "acme", "name": "ci", "state": "active"}.items() <= next(
        each for each in listed.document["keys"] if each["id"] == key_id
    ).items()
    revoked = await asyncio.to_thread(command.run, "key", "revoke", key_id)
    assert revoked.code == 0, revoked.err

    told = await ask_until(asker, key, "UNAUTHENTICATED")
    assert told.cause == "revoked_key"
    assert (await asker.ask("http", house.key("acme"))).code == "OK"


@requirement("tenants:identified")
async def test_the_command_asks_with_the_key_of_its_environment(
    house: House, tmp_path: Path
) -> None:
    command = CommandLine(tmp_path)
    address = house.suite.address(GATEWAY)
    asking = ("ask", "Go.", "--agent", "probe_early", "--gateway", address, "--json")

    known = await asyncio.to_thread(command.run, *asking, SIXHOP_API_KEY=house.key("acme"))
    unknown = await asyncio.to_thread(command.run, *asking)

    assert known.code == 0, known
    # What its user can repair.
    assert unknown.code == 2
    assert unknown.document["error"]["reason"] == "UNAUTHENTICATED"
    assert "SIXHOP_API_KEY" in unknown.document["error"]["advice"]


@requirement("tenants:identified")
async def test_a_stream_that_is_refused_has_a_status_of_its_own(house: House, asker: Asker) -> None:
    told = await asker.ask("http", None, stream=True)
    over = await asker.ask("http", house.key("revoked"), stream=True)

    assert (told.status, told.cause) == (401, "no_key")
    assert (over.status, over.cause) == (401, "revoked_key")


@requirement("tenants:key-file")
async def test_a_file_that_makes_no_sense_keeps_the_door_as_it_was(
    house: House, asker: Asker
) -> None:
    content = house.keys_file.read_bytes()
    house.keys_file.write_bytes(b'{"version": 1, "keys": [')
    try:
        await eventually(
            lambda: [
                line
                for line in house.suite.child(GATEWAY).events()
                if line["event"] == "access_unreadable"
            ],
            WAIT_S,
            "the gateway tells that the file makes no sense",
        )
        assert (await asker.ask("grpc", house.key("acme"))).code == "OK"
        assert (await asker.ask("grpc", None)).code == "UNAUTHENTICATED"
    finally:
        house.keys_file.write_bytes(content)


@requirement("tenants:health-for-everybody")
async def test_health_is_told_to_everybody(house: House, asker: Asker) -> None:
    for path in ("/livez", "/readyz", "/v1/health"):
        assert (await asker.get(path))[0] == 200
    async with open_channel(house.suite.address(GATEWAY)) as channel:
        snapshot = await RuntimeServiceStub(channel).GetSnapshot(
            runtime_pb2.GetSnapshotRequest(), timeout=5
        )
    assert snapshot.hop == GATEWAY


@requirement("tenants:keys-never-logged")
async def test_no_log_has_a_key_or_a_token(house: House, asker: Asker) -> None:
    good, token = house.key("acme"), house.token()
    for door in DOORS:
        for shown in (good, token, good[:-4] + "beef", token[:-4] + "beef", house.key("expired")):
            for agent in ("probe_six", "probe_early", "nobody"):
                await asker.ask(door, shown, agent=agent)
            await asker.ask(door, shown, question="")
            await asker.ask(door, shown, question="x" * 9000)
    last = await asker.ask("grpc", good)
    await house.suite.line(GATEWAY, last.run_id, "call_ended")

    written = b"".join(file.read_bytes() for file in house.suite.folder.glob("*.log"))
    written += b"".join(file.read_bytes() for file in house.suite.folder.glob("*.out"))
    assert b'"tenant":"acme"' in written
    for secret in house.secrets:
        assert secret.encode() not in written
        assert secret[:24].encode() not in written
