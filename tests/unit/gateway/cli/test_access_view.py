"""Holds the check to telling who comes in, and what each tenant may do."""

from pathlib import Path

import pytest

from gateway.access.key_file import DEFAULT
from gateway.cli.access_view import access_document, access_lines, who_comes_in
from services.runtime.config import Config, load_config
from tests.requirements import requirement


def read(folder: Path, text: str = "", **environ: str) -> Config:
    """Return a configuration in a folder."""
    path = folder / "sixhop.toml"
    path.write_text(text)
    return load_config(path, {f"SIXHOP_GATEWAY__{key}": value for key, value in environ.items()})


ISSUER = {
    "JWT__JWKS_URL": "https://a.test/jwks",
    "JWT__ISSUER": "https://a.test/",
    "JWT__AUDIENCE": "sixhop",
}


@requirement("tenants:loopback-only")
@pytest.mark.parametrize(
    ("environ", "who"),
    [
        ({}, "everybody on this machine"),
        ({"OPEN": "true"}, "everybody"),
        ({"HOST": "0.0.0.0"}, "nobody: the gateway would not start"),
        ({"HTTP_HOST": "::"}, "nobody: the gateway would not start"),
        ({"KEYS_FILE": "/run/keys.json"}, "keys of /run/keys.json"),
        (ISSUER, "tokens of https://a.test/"),
        (ISSUER | {"KEYS_FILE": "/k"}, "keys of /k and tokens of https://a.test/"),
        (ISSUER | {"OPEN": "1"}, "tokens of https://a.test/, and whoever shows nothing"),
        ({"KEYS_FIL": "x"}, "unknown: the gateway's section cannot be read"),
    ],
)
def test_who_comes_in_is_told(tmp_path: Path, environ: dict[str, str], who: str) -> None:
    assert who_comes_in(read(tmp_path, **environ)) == who


@requirement("tenants:loopback-only")
def test_keys_beside_the_configuration_are_told(tmp_path: Path) -> None:
    config = read(tmp_path, HOST="0.0.0.0")
    path = tmp_path / DEFAULT
    path.parent.mkdir()
    path.write_text("{}")

    assert who_comes_in(config) == f"keys of {path}"


@requirement("tenants:tables")
def test_what_each_tenant_may_do_is_told(tmp_path: Path) -> None:
    config = read(
        tmp_path,
        "[tenants.default]\nrequests_per_minute = 6000\n"
        '[tenants.acme]\ntools = []\nagents = ["b", "a"]\n[tenants.same]\n',
    )

    assert access_lines(config)[1:] == [
        "tenant default: requests_per_minute 6,000",
        "tenant acme: requests_per_minute 6,000, agents a b, tools none",
        "tenant same: requests_per_minute 6,000",
    ]
    assert access_document(config)["tenants"]["acme"]["tools"] == []
    assert access_lines(read(tmp_path))[1:] == []
