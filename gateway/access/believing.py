"""Believes the tokens of an issuer while the gateway runs; imported only where one is named."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from gateway.access.following import Follower
from gateway.access.jwks import JwksFile, JwksUrl, KeySource, read_jwks
from gateway.access.jwt_settings import JwtSettings
from gateway.access.tokens import Tokens
from services.runtime.background import background
from services.runtime.clock import Clock


@asynccontextmanager
async def believing(settings: JwtSettings, clock: Clock) -> AsyncIterator[Tokens]:
    """Believe tokens while the block runs, and keep their keys fresh."""
    source = _key_source(settings, clock)
    async with background(source.keep()):
        yield Tokens(settings, source)


def _key_source(settings: JwtSettings, clock: Clock) -> KeySource:
    if settings.jwks_file is None:
        return JwksUrl(
            settings.jwks_url,
            clock,
            refresh_interval_s=settings.refresh_interval_s,
            refetch_interval_s=settings.refetch_interval_s,
        )
    follower = Follower(settings.jwks_file, read_jwks, clock)
    follower.look()
    return JwksFile(follower)
