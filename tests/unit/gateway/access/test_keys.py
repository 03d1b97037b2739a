"""Holds keys to opening the door for whom they were made, and for nobody else."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.access import keys
from gateway.access.keys import KeyList, KeyRecord, KeyRing, make_key, read_keys
from services.runtime.errors import UnauthenticatedError
from tests.requirements import requirement

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def counted(length: int) -> bytes:
    """Return bytes that everybody can guess."""
    return bytes(range(length))


def made(
    *, expires: datetime | None = None, revoked: datetime | None = None
) -> tuple[str, KeyRecord]:
    """Return a key of acme."""
    key, record = make_key("acme", name="ci", now=NOW, expires=expires, random_bytes=counted)
    return key, record.model_copy(update={"revoked_time": revoked})


def refusal(ring: KeyRing, key: str, now: datetime = NOW) -> UnauthenticatedError:
    """Return why a key opens nothing."""
    with pytest.raises(UnauthenticatedError) as caught:
        ring.tenant_of(key, now)
    return caught.value


@requirement("tenants:identified")
def test_a_key_is_known_by_its_digest_alone() -> None:
    key, record = made()

    assert KeyRing([record]).tenant_of(key, NOW) == "acme"
    assert key.startswith(f"sk-sixhop-{record.id}-")
    kept = KeyList(keys=(record,)).model_dump_json()
    assert key.rpartition("-")[2] not in kept
    assert read_keys(kept.encode()) == (record,)


@requirement("tenants:one-way-for-wrong-keys")
@given(st.text(max_size=80))
def test_no_other_text_is_a_key(text: str) -> None:
    key, record = made()
    ring = KeyRing([record])

    for wrong in (text, f"sk-sixhop-{text}", f"sk-sixhop-{record.id}-{text}", key + text + "x"):
        assert refusal(ring, wrong).cause == "unknown_key"


@requirement("tenants:one-way-for-wrong-keys")
def test_a_wrong_secret_and_an_unknown_id_take_the_same_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    key, record = made()
    ring = KeyRing([record])
    digested: list[bytes] = []

    def digest(text: bytes) -> object:
        digested.append(text)
        return sha256(text)

    monkeypatch.setattr(keys, "sha256", digest)
    wrong = [key[:-1] + "x", key.replace(record.id, "f" * 12), "nothing-of-the-kind"]

    told = {(error.message, error.cause) for error in (refusal(ring, each) for each in wrong)}

    assert len(told) == 1
    assert digested == [each.encode() for each in wrong]


@requirement("tenants:identified")
@pytest.mark.parametrize(
    ("expires", "revoked", "cause"),
    [
        (NOW, None, "expired_key"),
        (None, NOW, "revoked_key"),
        (NOW - timedelta(days=1), NOW - timedelta(days=2), "revoked_key"),
    ],
)
def test_a_key_that_is_over_opens_nothing_and_only_its_owner_hears_why(
    expires: datetime | None, revoked: datetime | None, cause: str
) -> None:
    key, record = made(expires=expires, revoked=revoked)
    ring = KeyRing([record])

    assert refusal(ring, key).cause == cause
    assert refusal(ring, key[:-1] + "x").cause == "unknown_key"


def test_a_key_opens_until_the_instant_at_which_it_expires() -> None:
    key, record = made(expires=NOW + timedelta(days=90))
    ring = KeyRing([record])

    assert ring.tenant_of(key, NOW + timedelta(days=90) - timedelta(seconds=1)) == "acme"
    assert refusal(ring, key, NOW + timedelta(days=90)).cause == "expired_key"


RECORD = made()[1].model_dump_json()
TWIN = made()[1].model_copy(update={"id": "f" * 12, "tenant": "other"}).model_dump_json()
"""Has the digest of the same key."""


@requirement("tenants:key-file")
@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "the file"),
        ("[]", "the file"),
        ('{"version": 2, "keys": []}', "version"),
        ('{"version": 1, "keys": [{"id": "xyz"}]}', r"keys\.0\.id"),
        (f'{{"version": 1, "keys": [{RECORD}, {RECORD}]}}', "an id is there twice"),
        (f'{{"version": 1, "keys": [{RECORD}, {TWIN}]}}', "a digest is there twice"),
        (f'{{"version": 1, "more": 1, "keys": [{RECORD}]}}', "more"),
    ],
)
def test_what_is_no_file_of_keys_is_refused_without_what_stands_there(
    content: str, told: str
) -> None:
    with pytest.raises(ValueError, match=told) as caught:
        read_keys(content.encode())

    assert made()[1].digest not in str(caught.value)


def test_two_keys_are_never_the_same() -> None:
    import secrets

    found: Sequence[str] = [
        make_key("a", name="", now=NOW, expires=None, random_bytes=secrets.token_bytes)[0]
        for _ in range(100)
    ]

    assert len(set(found)) == 100
