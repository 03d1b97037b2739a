"""Holds the file of keys to being its owner's, and to being whole."""

import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gateway.access.key_file import DEFAULT, KeyFileError, change, keys_path, stored
from gateway.access.keys import KeyRecord, make_key
from gateway.cli.profiles import FOLDER
from tests.requirements import requirement


def record(number: int) -> KeyRecord:
    """Return what is kept of a key."""
    now = datetime(2026, 1, 2, tzinfo=UTC)
    return make_key(
        "acme", name="", now=now, expires=None, random_bytes=lambda n: bytes([number] * n)
    )[1]


@requirement("tenants:key-file")
def test_only_its_owner_reads_it_and_nothing_else_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "a" / "keys.json"

    change(path, lambda kept: [*kept, record(1)])
    change(path, lambda kept: [*kept, record(2)])

    assert stored(path) == (record(1), record(2))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert {each.name for each in path.parent.iterdir()} == {"keys.json", "keys.json.lock"}


@requirement("tenants:key-file")
def test_whoever_reads_it_meanwhile_sees_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    change(path, lambda kept: [record(1)])

    with path.open("rb") as reader:
        change(path, lambda kept: [record(2)])
        assert record(1).id.encode() in reader.read()

    assert stored(path) == (record(2),)


@requirement("tenants:key-file")
def test_a_change_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    change(path, lambda kept: [record(1)])

    def broken(kept: object) -> list[KeyRecord]:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        change(path, broken)
    change(path, lambda kept: kept)

    assert stored(path) == (record(1),)
    assert len(list(tmp_path.iterdir())) == 2


@requirement("tenants:key-file")
def test_two_commands_at_once_lose_no_key(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"

    def meanwhile(kept: object) -> list[KeyRecord]:
        with pytest.raises(KeyFileError, match="another command"):
            change(path, lambda kept: [record(2)])
        return [record(1)]

    change(path, meanwhile)

    assert stored(path) == (record(1),)


@requirement("tenants:key-file")
def test_a_file_that_makes_no_sense_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_text("{")

    with pytest.raises(KeyFileError, match="restore it"):
        change(path, lambda kept: [record(1)])

    assert path.read_text() == "{"


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "target.json", tmp_path / "keys.json"
    change(target, lambda kept: [record(1)])
    link.symlink_to(target)

    change(link, lambda kept: [record(2)])

    assert link.is_symlink()
    assert stored(target) == (record(2),)


@pytest.mark.parametrize(
    ("configured", "source", "path"),
    [
        (Path("/run/keys"), "/etc/sixhop.toml", Path("/run/keys")),
        (None, "/etc/sixhop.toml", Path("/etc") / DEFAULT),
        (None, "sixhop.toml", DEFAULT),
        (None, "", DEFAULT),
        (None, str(FOLDER / "naive.toml"), DEFAULT),
    ],
)
def test_keys_are_beside_the_configuration(
    configured: Path | None, source: str, path: Path
) -> None:
    assert keys_path(configured, source) == path
