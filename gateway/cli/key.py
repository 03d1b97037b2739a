"""Makes, lists and revokes API keys: the verbs of `key`."""

import re
import secrets
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from gateway.access.key_file import Change, KeyFileError, change, keys_path, stored
from gateway.access.keys import KeyRecord, make_key
from gateway.cli.console import one_line, open_console, until_reader_leaves, write_json
from gateway.cli.parts import read_config
from gateway.cli.problem import EXIT_OK, FailedError, RefusedError
from gateway.config import GatewaySettings
from services.runtime.clock import Clock
from services.runtime.config import Config, ConfigError
from services.runtime.environment import API_KEY_VARIABLE
from services.runtime.tenants import DEFAULT, NAME, SECTION
from services.runtime.topology import GATEWAY

MAX_NAME_CHARS = 100
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_LENGTH = re.compile(r"([1-9][0-9]{0,4})([hdw])")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyOptions:
    """Is what all verbs of `key` are told."""

    config_path: Path | None = None
    as_json: bool = False


async def create(
    environ: Mapping[str, str],
    clock: Clock,
    options: KeyOptions,
    *,
    tenant: str,
    name: str = "",
    expires: str = "",
) -> int:
    """Make a key and show it, for the only time; return the exit code.

    Args:
        environ: the environment.
        clock: the clock.
        options: where the configuration is, and how to tell.
        tenant: whose runs they will be.
        name: what its owner calls it.
        expires: after how long it lets nobody in, such as `90d`; empty for never.

    Raises:
        RefusedError: an option is wrong, or the file cannot be written.
    """
    config, path = _place(environ, options)
    if not NAME.fullmatch(tenant):
        raise RefusedError(
            f"--tenant {tenant}: take up to 64 letters, digits, dots, hyphens and underscores, a "
            "letter or digit first"
        )
    if len(name) > MAX_NAME_CHARS:
        raise RefusedError(f"--name has {len(name)} characters; {MAX_NAME_CHARS} at most")
    now = clock.utc()
    key, record = make_key(
        tenant,
        name=one_line(name),
        now=now,
        expires=now + length_of(expires) if expires else None,
        random_bytes=secrets.token_bytes,
    )
    _change(path, lambda kept: [*kept, record])
    with until_reader_leaves():
        if options.as_json:
            told = {"ok": True, "key": key, **_document(record, now), "file": str(path)}
            write_json(sys.stdout, told)
        else:
            _say(key)
            _say(f"  the key {record.id} of {tenant}; it is not shown again: {path} has its digest")
            _say(f"  send it as `authorization: Bearer KEY`; sixhop ask takes {API_KEY_VARIABLE}")
            if tenant not in config.tenants.named:
                _say(f"  without [{SECTION}.{tenant}] the limits of [{SECTION}.{DEFAULT}] hold")
    return EXIT_OK


async def list_keys(environ: Mapping[str, str], clock: Clock, options: KeyOptions) -> int:
    """Show all keys, without what opens the door; return the exit code.

    Raises:
        RefusedError: the file cannot be read.
    """
    _, path = _place(environ, options)
    now = clock.utc()
    try:
        records = stored(path)
    except KeyFileError as error:
        raise FailedError(str(error), reason="KEYS_UNREADABLE") from None
    with until_reader_leaves():
        if options.as_json:
            listed = [_document(each, now) for each in records]
            write_json(sys.stdout, {"ok": True, "file": str(path), "keys": listed})
        elif records:
            open_console(sys.stdout).print(_table(records, now))
        else:
            _say(f"there is no key in {path}; sixhop key create --tenant NAME makes one")
    return EXIT_OK


async def revoke(
    environ: Mapping[str, str], clock: Clock, options: KeyOptions, *, key_id: str
) -> int:
    """Have a key let nobody in any more, from a second later on; return the exit code.

    Raises:
        RefusedError: there is no such key, or the file cannot be written.
    """
    _, path = _place(environ, options)
    now = clock.utc()
    found: list[KeyRecord] = []

    def revoked(kept: Sequence[KeyRecord]) -> Sequence[KeyRecord]:
        found.extend(each for each in kept if each.id == key_id)
        if not found:
            known = ", ".join(each.id for each in kept) or "none"
            raise RefusedError(f"there is no key {key_id} in {path}; known: {known}")
        return [_ended(each, now) if each.id == key_id else each for each in kept]

    _change(path, revoked)
    with until_reader_leaves():
        if options.as_json:
            write_json(sys.stdout, {"ok": True, **_document(_ended(found[0], now), now)})
        else:
            _say(f"the key {key_id} of {found[0].tenant} lets nobody in any more")
    return EXIT_OK


def length_of(text: str) -> timedelta:
    """Return the length that a person means: `12h`, `90d`, `4w`.

    Raises:
        RefusedError: it is none.
    """
    found = _LENGTH.fullmatch(text.strip())
    if found is None:
        raise RefusedError(f"--expires {text}: write hours, days or weeks, such as 12h, 90d or 4w")
    return int(found[1]) * _UNITS[found[2]]


def _place(environ: Mapping[str, str], options: KeyOptions) -> tuple[Config, Path]:
    config = read_config(environ, options.config_path)
    try:
        settings = config.section(GATEWAY, GatewaySettings)
    except ConfigError as error:
        raise RefusedError(str(error), reason="BAD_CONFIG") from None
    return config, keys_path(settings.keys_file, config.source)


def _change(path: Path, changed: Change) -> None:
    try:
        change(path, changed)
    except KeyFileError as error:
        raise FailedError(str(error), reason="KEYS_NOT_WRITTEN") from None


def _ended(record: KeyRecord, now: datetime) -> KeyRecord:
    return record.model_copy(update={"revoked_time": record.revoked_time or now})


def _document(record: KeyRecord, now: datetime) -> dict[str, Any]:
    return {
        "id": record.id,
        "tenant": record.tenant,
        "name": record.name,
        "state": record.state(now),
        "created_time": _date(record.created_time),
        "expires_time": _date(record.expires_time),
        "revoked_time": _date(record.revoked_time),
    }


def _table(records: Sequence[KeyRecord], now: datetime) -> Table:
    table = Table("id", "tenant", "name", "state", "made", "expires", box=box.SIMPLE_HEAD)
    for each in records:
        made, expires = _date(each.created_time), _date(each.expires_time) or "never"
        cells = (each.id, each.tenant, one_line(each.name), each.state(now), made, expires)
        table.add_row(*map(Text, map(str, cells)))
    return table


def _date(instant: datetime | None) -> str | None:
    return None if instant is None else instant.isoformat(timespec="seconds")


def _say(text: str) -> None:
    open_console(sys.stdout).print(Text(text), soft_wrap=True)
