"""Makes API keys, and knows them again by their digests."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from services.runtime.errors import UnauthenticatedError
from services.runtime.tenants import NAME

PREFIX = "sk-sixhop-"
"""By which people, and programs that look for leaked secrets, know one."""
ID_BYTES = 6
SECRET_BYTES = 32
MAX_KEY_CHARS = 512
"""What is longer is none of ours; it is looked at up to here only."""


class KeyRecord(BaseModel):
    """Is what is kept of a key: all but the key."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(pattern=r"^[0-9a-f]{12}$")
    """Names it, to its owner and in lists."""
    tenant: str = Field(pattern=f"^{NAME.pattern}$")
    """Whose runs they are."""
    name: str = Field(default="", max_length=100)
    """What its owner calls it."""
    digest: str = Field(pattern=r"^[0-9a-f]{64}$", repr=False)
    """SHA-256 of the whole key, hexadecimal.

    Slow hashes and salts are for what people think of. This secret is 256 bits of chance: nobody
    finds it by trying, and the door must not need a tenth of a second for every call.
    """
    created_time: AwareDatetime
    expires_time: AwareDatetime | None = None
    """From when on it lets nobody in; None for never."""
    revoked_time: AwareDatetime | None = None
    """Since when it lets nobody in; None while it does."""

    def state(self, now: datetime) -> Literal["active", "revoked", "expired"]:
        """Return whether it lets anybody in."""
        if self.revoked_time is not None:
            return "revoked"
        if self.expires_time is not None and self.expires_time <= now:
            return "expired"
        return "active"


class KeyList(BaseModel):
    """Is what a file of keys holds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[1] = 1
    keys: tuple[KeyRecord, ...] = ()


def read_keys(content: bytes) -> Sequence[KeyRecord]:
    """Return the keys of a file.

    Raises:
        ValueError: it is no file of keys; says where, and nothing of what stands there.
    """
    try:
        found = KeyList.model_validate_json(content).keys
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"{where or 'the file'}: {first['msg']}") from None
    if len({each.id for each in found}) < len(found):
        raise ValueError("keys: an id is there twice")
    if len({each.digest for each in found}) < len(found):
        # A key is known by it: which of the two is revoked, and whose it is, nobody could tell.
        raise ValueError("keys: a digest is there twice")
    return found


def make_key(
    tenant: str,
    *,
    name: str,
    now: datetime,
    expires: datetime | None,
    random_bytes: Callable[[int], bytes],
) -> tuple[str, KeyRecord]:
    """Return a new key, which nothing can show again, and what is kept of it.

    Args:
        tenant: whose runs they are.
        name: what its owner calls it.
        now: the present date and time.
        expires: from when on it lets nobody in.
        random_bytes: returns so many bytes that nobody can guess.
    """
    key_id = random_bytes(ID_BYTES).hex()
    key = f"{PREFIX}{key_id}-{random_bytes(SECRET_BYTES).hex()}"
    record = KeyRecord(
        id=key_id,
        tenant=tenant,
        name=name,
        digest=_digest(key).hex(),
        created_time=now,
        expires_time=expires,
    )
    return key, record


class KeyRing:
    """Knows keys."""

    def __init__(self, records: Iterable[KeyRecord] = ()) -> None:
        """Take what is kept of them."""
        self._known = {bytes.fromhex(each.digest): each for each in records}
        """What is kept of each, by the digest of the whole key."""

    def __len__(self) -> int:
        """Return how many there are, revoked and expired ones included."""
        return len(self._known)

    def tenant_of(self, key: str, now: datetime) -> str:
        """Return whose key this is.

        A wrong secret and an id that does not exist take the same way and come to the same answer:
        looked for is the digest of the whole key, which nobody can aim, and only who has the right
        secret is told more than that it is not known.

        Raises:
            UnauthenticatedError: it is not known, revoked, or expired.
        """
        record = self._known.get(_digest(key))
        if record is None:
            raise UnauthenticatedError(
                "this key is not known here; send one that `sixhop key create` has shown, whole",
                cause="unknown_key",
            )
        state = record.state(now)
        if state == "active":
            return record.tenant
        raise UnauthenticatedError(
            f"the key {record.id} is {state}; ask for another (sixhop key create --tenant "
            f"{record.tenant})",
            cause=f"{state}_key",
        )


def _digest(key: str) -> bytes:
    return sha256(key[:MAX_KEY_CHARS].encode("utf-8", "surrogateescape")).digest()
