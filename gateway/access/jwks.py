"""Knows the public keys that tokens are signed with, from a file or from their issuer."""

import asyncio
from collections.abc import Mapping
from typing import Protocol

import jwt
import orjson
from aiohttp import ClientError, ClientSession, ClientTimeout

from gateway.access.following import Follower
from services.runtime.clock import Clock
from services.runtime.errors import SelfUnavailableError
from services.runtime.telemetry import TOKEN_KEYS_AWAY, TOKEN_KEYS_LEARNED, get_logger

FETCH_TIMEOUT_S = 3.0
"""How long an issuer may take for its keys, seconds."""
MAX_BYTES = 1024 * 1024
"""The largest set of keys that is read; some thousand fit."""

Keys = Mapping[str, jwt.PyJWK]
"""The keys by their names; one without a name has the empty one."""


def read_jwks(content: bytes) -> Keys:
    """Return the public keys of a set that can be used for signatures.

    Raises:
        ValueError: it is none, or holds no such key.
    """
    try:
        found: object = orjson.loads(content)
        listed = found.get("keys") if isinstance(found, dict) else None
        if not isinstance(listed, list):
            raise ValueError("it is no set of keys: there is no list `keys`")
        # Never one that is secret: whoever publishes it by mistake must not let everybody in.
        public = [
            each
            for each in listed
            if isinstance(each, dict) and each.get("kty") != "oct" and each.get("use") != "enc"
        ]
        keys = jwt.PyJWKSet(public).keys
    except (orjson.JSONDecodeError, jwt.PyJWTError) as error:
        raise ValueError(f"no key in it can be used ({type(error).__name__})") from None
    return {each.key_id or "": each for each in keys}


def key_in(keys: Keys, key_id: str | None) -> jwt.PyJWK | None:
    """Return the key of a token; one that names none means the only one there is."""
    if key_id is not None:
        return keys.get(key_id)
    return next(iter(keys.values())) if len(keys) == 1 else None


class KeySource(Protocol):
    """Gives the keys of tokens."""

    async def find(self, key_id: str | None, within_s: float) -> jwt.PyJWK | None:
        """Return a key by its name; None when there is none.

        Raises:
            SelfUnavailableError: nobody has told us any keys yet.
        """
        ...

    async def keep(self) -> None:
        """Keep the keys as new as they must be, for ever."""
        ...


class JwksFile:
    """Takes keys from a file."""

    def __init__(self, follower: Follower[Keys]) -> None:
        """Take what follows the file."""
        self._follower = follower

    async def find(self, key_id: str | None, within_s: float) -> jwt.PyJWK | None:
        """Return a key by its name."""
        keys = self._follower.value
        if keys is None:
            raise _no_keys(str(self._follower.path))
        return key_in(keys, key_id)

    async def keep(self) -> None:
        """Follow the file."""
        await self._follower.follow_forever()


class JwksUrl:
    """Takes keys from their issuer, and keeps those that it told last while it is away."""

    def __init__(
        self, url: str, clock: Clock, *, refresh_interval_s: float, refetch_interval_s: float
    ) -> None:
        """Take the address, how often to ask there, and how soon for an unknown key, seconds."""
        self._url = url
        self._clock = clock
        self._refresh_s = refresh_interval_s
        self._refetch_s = refetch_interval_s
        self._keys: Keys | None = None
        self._wanted = asyncio.Event()
        """Set by whoever needs what we do not have."""
        self._fetched = asyncio.Condition()
        self._fetching = False
        self._asked_at = -refetch_interval_s
        self._problem = ""

    async def find(self, key_id: str | None, within_s: float) -> jwt.PyJWK | None:
        """Return a key by its name, after asking the issuer for one that is not known."""
        key = key_in(self._keys or {}, key_id)
        if key is None and self._asks():
            await self._hear(min(within_s, FETCH_TIMEOUT_S))
            key = key_in(self._keys or {}, key_id)
        if key is None and self._keys is None:
            raise _no_keys(self._url)
        return key

    async def keep(self) -> None:
        """Fetch the keys now, now and then, and when somebody needs one that is not known."""
        async with ClientSession(timeout=ClientTimeout(total=FETCH_TIMEOUT_S)) as session:
            while True:
                self._wanted.clear()
                self._asked_at = self._clock.now()
                self._fetching = True
                await self._fetch(session)
                self._fetching = False
                async with self._fetched:
                    self._fetched.notify_all()
                # One that has told nothing yet is asked again as soon as may be.
                pause_s = self._refetch_s if self._keys is None else self._refresh_s
                await self._pause(pause_s)

    def _asks(self) -> bool:
        """Have the keys fetched, if that may be already; tell whether they are being fetched."""
        if not self._fetching and self._clock.now() >= self._asked_at + self._refetch_s:
            self._wanted.set()
        return self._fetching or self._wanted.is_set()

    async def _hear(self, within_s: float) -> None:
        """Wait until the issuer has been asked; all who wait meanwhile share it."""
        try:
            async with asyncio.timeout(within_s), self._fetched:
                await self._fetched.wait()
        except TimeoutError:
            return

    async def _pause(self, length_s: float) -> None:
        sleeping = asyncio.ensure_future(self._clock.sleep(length_s))
        wanted = asyncio.ensure_future(self._wanted.wait())
        try:
            await asyncio.wait({sleeping, wanted}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
            wanted.cancel()

    async def _fetch(self, session: ClientSession) -> None:
        try:
            async with session.get(self._url, allow_redirects=False) as response:
                if response.status != 200:
                    raise ValueError(f"it answers {response.status}")
                content = await response.content.read(MAX_BYTES + 1)
                while len(content) <= MAX_BYTES and (more := await response.content.readany()):
                    content += more
            if len(content) > MAX_BYTES:
                raise ValueError(f"it has more than {MAX_BYTES:,} bytes")
            keys = read_jwks(content)
        except (ClientError, TimeoutError, OSError, ValueError) as error:
            self._miss(str(error) or type(error).__name__)
            return
        if keys.keys() != (self._keys or {}).keys() or self._problem:
            get_logger().info(TOKEN_KEYS_LEARNED, url=self._url, keys=sorted(keys))
        self._keys, self._problem = keys, ""

    def _miss(self, problem: str) -> None:
        if not self._problem:
            # Once, until it answers again.
            get_logger().warning(
                TOKEN_KEYS_AWAY,
                url=self._url,
                problem=problem,
                kept=sorted(self._keys or {}),
            )
        self._problem = problem


def _no_keys(where: str) -> SelfUnavailableError:
    return SelfUnavailableError(
        f"tokens cannot be checked: {where} has not told any key yet; try again, or with a key",
        cause="no_token_keys",
        retry_after_s=1.0,
    )
