"""Decides who comes in at the doors of the gateway, and refuses to open them to the whole world."""

import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Protocol

from gateway.access.following import Follower
from gateway.access.key_file import keys_path
from gateway.access.keys import PREFIX, KeyRing, read_keys
from gateway.access.shared_meter import SharedMeter
from gateway.config import GatewaySettings
from services.runtime.background import background
from services.runtime.clock import Clock
from services.runtime.config import Config, ConfigError
from services.runtime.errors import UnauthenticatedError
from services.runtime.orders import is_loopback
from services.runtime.policies.identification import ANYBODY
from services.runtime.process import Hop
from services.runtime.telemetry import ACCESS_RULE, get_logger

_BEARER = re.compile(r"\s*bearer\s+(\S+)\s*", re.IGNORECASE)


class TokenReader(Protocol):
    """Believes tokens, or says why not."""

    async def tenant_of(self, token: str, within_s: float) -> str:
        """Return the tenant that a token names; `within_s` is how long its issuer may take."""
        ...


class Entrance:
    """Knows callers by what they show."""

    def __init__(
        self,
        settings: GatewaySettings,
        keys: Follower[KeyRing],
        tokens: TokenReader | None,
        clock: Clock,
    ) -> None:
        """Take the rule, the keys, the tokens that are believed, if any, and the clock."""
        self._open = settings.open
        self._http_host = settings.http_host or settings.host
        self._asks_for_keys = settings.keys_file is not None
        self._keys = keys
        self._tokens = tokens
        self._clock = clock

    @property
    def asks(self) -> bool:
        """Return whether callers are asked who they are; once there was a file of keys, for good.

        Also when nobody can read it: who has put it there wants them to be asked.
        """
        return self._asks_for_keys or self._keys.found or self._tokens is not None

    def why_operator_key(self) -> str:
        """Return why orders need the operator's key here; empty when they do not."""
        if self.asks:
            return "callers need keys here"
        if not is_loopback(self._http_host):
            return f"the HTTP door listens on {self._http_host}"
        return ""

    def rule(self) -> str:
        """Return who may come in, for people."""
        if not self.asks:
            whom = "everybody" if self._open else "everybody on this machine"
            return f"{whom}: there is no key (sixhop key create --tenant NAME makes one)"
        known = f"{len(self._keys.value or ())} keys" + (" and tokens" if self._tokens else "")
        return f"{known}; whoever shows nothing as well" if self._open else f"{known}; nobody else"

    async def authenticate(self, credential: str, within_s: float) -> str:
        """Return the tenant that a credential stands for; as the policy says."""
        if not self.asks or (self._open and not credential):
            return ANYBODY
        found = _BEARER.fullmatch(credential)
        if found is None and "," in credential:
            raise UnauthenticatedError(
                "`authorization` came more than once; send one key or one token",
                cause="several_keys",
            )
        if found is None:
            raise UnauthenticatedError(
                "there is no key; send the header (over gRPC: the metadata) `authorization: Bearer "
                "KEY`, with a key that `sixhop key create` has shown",
                cause="no_key",
            )
        shown = found[1]
        if self._tokens is not None and not shown.startswith(PREFIX):
            return await self._tokens.tenant_of(shown, within_s)
        return (self._keys.value or KeyRing()).tenant_of(shown, self._clock.utc())


def entrance_problem(config: Config, settings: GatewaySettings) -> str:
    """Return why the doors must not be opened like this; empty when they may.

    Nobody is asked where only this machine can call. Elsewhere somebody must be, unless the
    configuration says in so many words that everybody may come in.
    """
    hosts = {"host": settings.host, "http_host": settings.http_host or settings.host}
    exposed = {key: host for key, host in hosts.items() if not is_loopback(host)}
    asks = (
        settings.open
        or settings.keys_file is not None
        or settings.jwt.enabled
        or keys_path(None, config.source).exists()
    )
    if not exposed or asks:
        return ""
    key, host = next(iter(exposed.items()))
    return (
        f"gateway.{key} {host} lets others than this machine in, and there is neither a key nor a "
        "token that they could show; make a key (sixhop key create --tenant NAME), or name an "
        "issuer ([gateway.jwt]), or listen on 127.0.0.1, or say that everybody may come in because "
        "something before the gateway asks (SIXHOP_GATEWAY__OPEN=true)"
    )


@asynccontextmanager
async def open_entrance(hop: Hop, settings: GatewaySettings) -> AsyncIterator[Entrance]:
    """Have callers asked who they are while the block runs.

    Raises:
        ConfigError: the doors would be open to the whole world, or a setting is wrong.
    """
    problem = entrance_problem(hop.config, settings)
    if problem:
        raise ConfigError(problem)
    path = keys_path(settings.keys_file, hop.config.source)
    keys = Follower(path, lambda content: KeyRing(read_keys(content)), hop.clock)
    keys.look()
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(background(keys.follow_forever()))
        tokens: TokenReader | None = None
        if settings.jwt.enabled:
            # Cryptography and an HTTP client take 20 MB, and few gateways believe tokens.
            from gateway.access.believing import believing

            tokens = await stack.enter_async_context(believing(settings.jwt, hop.clock))
        entrance = Entrance(settings, keys, tokens, hop.clock)
        hop.runtime.orders.authority.why_key = entrance.why_operator_key
        if hop.tenancy is not None:
            hop.tenancy.identification.authenticate = entrance.authenticate
            url = settings.quota_redis_url.get_secret_value()
            if url:
                meter = SharedMeter(url, settings.quota_redis_prefix, hop.clock)
                await stack.enter_async_context(background(meter.tell_forever()))
                hop.tenancy.quota.meter = meter
        get_logger().info(ACCESS_RULE, who=entrance.rule())
        yield entrance
