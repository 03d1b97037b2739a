"""Holds the verbs of `key` to showing a key once, and to saying what to do."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from gateway.access.key_file import DEFAULT
from gateway.cli.ask import AskOptions, ask
from gateway.cli.key import KeyOptions, create, length_of, list_keys, revoke
from gateway.cli.problem import RefusedError
from services.runtime.clock import ManualClock
from tests.requirements import requirement

CLOCK = ManualClock()


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Return a configuration, beside which keys are kept."""
    path = tmp_path / "sixhop.toml"
    path.write_text("[tenants.acme]\nrequests_per_minute = 5\n")
    return path


@requirement("tenants:keys-shown-once")
async def test_a_key_is_shown_when_it_is_made_and_never_again(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = KeyOptions(config_path=config)
    assert await create({}, CLOCK, options, tenant="acme", name="ci", expires="90d") == 0
    key = capsys.readouterr().out.splitlines()[0]
    assert key.startswith("sk-sixhop-")

    key_id = key.split("-")[2]
    assert await list_keys({}, CLOCK, options) == 0
    assert await revoke({}, CLOCK, options, key_id=key_id) == 0
    shown = capsys.readouterr().out

    assert key_id in shown
    assert key.rpartition("-")[2] not in shown
    assert key.rpartition("-")[2] not in (config.parent / DEFAULT).read_text()


@requirement("tenants:keys-shown-once")
async def test_programs_read_the_same(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = KeyOptions(config_path=config, as_json=True)
    await create({}, CLOCK, options, tenant="acme", expires="1w")
    made = json.loads(capsys.readouterr().out)
    await revoke({}, CLOCK, options, key_id=made["id"])
    revoked = json.loads(capsys.readouterr().out)
    await revoke({}, CLOCK, options, key_id=made["id"])
    again = json.loads(capsys.readouterr().out)
    await list_keys({}, CLOCK, options)
    (listed,) = json.loads(capsys.readouterr().out)["keys"]

    assert made["file"] == str(config.parent / DEFAULT)
    assert (made["state"], revoked["state"]) == ("active", "revoked")
    assert listed == {key: value for key, value in again.items() if key != "ok"}
    assert listed["expires_time"] > listed["created_time"]


@requirement("tenants:keys-shown-once")
@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"tenant": "a b"}, "--tenant"),
        ({"tenant": "acme", "expires": "90"}, "12h, 90d or 4w"),
        ({"tenant": "acme", "expires": "0d"}, "--expires"),
        ({"tenant": "acme", "name": "x" * 101}, "--name"),
    ],
)
async def test_what_is_wrong_makes_no_key(config: Path, options: dict[str, str], told: str) -> None:
    with pytest.raises(RefusedError, match=told):
        await create({}, CLOCK, KeyOptions(config_path=config), **options)

    assert not (config.parent / DEFAULT).exists()


async def test_a_key_that_does_not_exist_is_not_revoked(config: Path) -> None:
    options = KeyOptions(config_path=config)
    await create({}, CLOCK, options, tenant="acme")

    with pytest.raises(RefusedError, match=r"there is no key nothing .*known: [0-9a-f]{12}"):
        await revoke({}, CLOCK, options, key_id="nothing")


def test_lengths_are_as_people_write_them() -> None:
    assert length_of("12h") == timedelta(hours=12)
    assert length_of("90d") == timedelta(days=90)
    assert length_of("4w") == timedelta(weeks=4)


@requirement("tenants:keys-never-logged")
async def test_what_cannot_be_a_key_is_refused_unseen() -> None:
    environ = {"SIXHOP_API_KEY": "hush hush"}

    with pytest.raises(RefusedError, match="SIXHOP_API_KEY") as caught:
        await ask(environ, CLOCK, AskOptions(text="?", gateway="127.0.0.1:1"))

    assert "hush" not in caught.value.message
