"""Believes tokens with real keys, published by a real server that goes away and comes back."""

import asyncio
import base64
import hmac
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from gateway.access.following import Follower
from gateway.access.jwks import MAX_BYTES, JwksFile, JwksUrl, read_jwks
from gateway.access.jwt_settings import JwtSettings
from gateway.access.tokens import Tokens
from services.runtime.background import background
from services.runtime.clock import MonotonicClock
from services.runtime.errors import PermissionDeniedError, SelfUnavailableError, SixhopError
from services.runtime.errors import UnauthenticatedError as Unauthenticated
from tests.integration.gateway.issuer import (
    AUDIENCE,
    ISSUER,
    Issuer,
    SigningKey,
    ec_key,
    rsa_key,
    running_issuer,
    token,
)
from tests.logged import Logged, logged
from tests.requirements import requirement
from tests.waiting import until

RSA, EC, OTHER = rsa_key("rsa"), ec_key("ec"), rsa_key("rsa")
PSS = rsa_key("pss", "PS256")
PATIENCE_S = 5.0


def settings(url: str, **others: Any) -> JwtSettings:
    """Return what is believed."""
    usual: dict[str, Any] = {
        "jwks_url": url,
        "issuer": ISSUER,
        "audience": AUDIENCE,
        "algorithms": ("RS256", "ES256", "PS256"),
        "clock_skew_s": 30,
    }
    return JwtSettings(**usual | others)


@asynccontextmanager
async def knowing(issuer: Issuer, *, refetch_interval_s: float = 0.05) -> AsyncIterator[Tokens]:
    """Return what knows the tokens of an issuer."""
    believed = settings(issuer.url)
    source = JwksUrl(
        issuer.url, MonotonicClock(), refresh_interval_s=3600, refetch_interval_s=refetch_interval_s
    )
    async with background(source.keep()):
        yield Tokens(believed, source)


async def refusal(tokens: Tokens, text: str) -> SixhopError:
    """Return why a token is not believed."""
    with pytest.raises(SixhopError) as caught:
        await tokens.tenant_of(text, PATIENCE_S)
    return caught.value


@requirement("tenants:tokens")
@pytest.mark.parametrize("key", [RSA, EC, PSS], ids=["RS256", "ES256", "PS256"])
async def test_a_token_that_its_issuer_has_signed_names_its_tenant(key: SigningKey) -> None:
    async with running_issuer(RSA, EC, PSS) as issuer, knowing(issuer) as tokens:
        assert await tokens.tenant_of(token(key), PATIENCE_S) == "acme"
        several = token(key, aud=["another", AUDIENCE])
        assert await tokens.tenant_of(several, PATIENCE_S) == "acme"


def unsigned() -> str:
    """Return a token that says it needs no signature."""
    parts = token(RSA).split(".")
    header = base64.urlsafe_b64encode(json.dumps({"alg": "none", "kid": "rsa"}).encode())
    return f"{header.decode().rstrip('=')}.{parts[1]}."


def signed_with_what_is_public() -> str:
    """Return a token whose secret is the issuer's public key, which everybody has."""
    header = base64.urlsafe_b64encode(json.dumps({"alg": "HS256", "kid": "rsa"}).encode())
    body = f"{header.decode().rstrip('=')}.{token(RSA).split('.')[1]}"
    public = RSA.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    signature = base64.urlsafe_b64encode(hmac.digest(public, body.encode(), sha256))
    return f"{body}.{signature.decode().rstrip('=')}"


def expired() -> str:
    """Return a token whose time was up long ago."""
    return token(RSA, exp=datetime.now(UTC) - timedelta(minutes=10))


def early() -> str:
    """Return a token whose time has not come."""
    return token(RSA, nbf=datetime.now(UTC) + timedelta(minutes=4))


@requirement("tenants:tokens")
@pytest.mark.parametrize(
    ("made", "cause"),
    [
        # Made by each test: a token lives for minutes, and all the tests together take longer.
        (expired, "expired_token"),
        (early, "early_token"),
        (unsigned, "unknown_token_key"),
        (signed_with_what_is_public, "unknown_token_key"),
        (partial(token, RSA, exp=None), "incomplete_token"),
        (partial(token, RSA, aud="elsewhere"), "wrong_audience"),
        (partial(token, RSA, aud=None), "incomplete_token"),
        (partial(token, RSA, iss="https://another.test/"), "wrong_issuer"),
        (partial(token, OTHER), "unknown_token_key"),
        (partial(token, RSA, header={"kid": "ec"}), "unknown_token_key"),
        (lambda: token(RSA)[:-8] + "AAAAAAAA", "unknown_token_key"),
        (lambda: "a.b.c", "unreadable_token"),
        (lambda: "nothing", "unreadable_token"),
        (lambda: "x" * 20_000, "unreadable_token"),
        (lambda: "é.é.é", "unreadable_token"),
    ],
)
async def test_any_other_token_is_not_believed_and_nothing_of_it_is_told(
    made: Callable[[], str], cause: str
) -> None:
    async with running_issuer(RSA, EC) as issuer, knowing(issuer) as tokens:
        error = await refusal(tokens, made())

    assert isinstance(error, Unauthenticated)
    assert error.cause == cause
    for part in ("acme", "elsewhere", ISSUER, "rsa"):
        assert part not in error.message


@requirement("tenants:tokens")
@pytest.mark.parametrize("tenant", [None, "", 7, ["acme"], "a b", "x" * 65])
async def test_a_token_that_names_no_tenant_is_nobodys(tenant: object) -> None:
    async with running_issuer(RSA) as issuer, knowing(issuer) as tokens:
        error = await refusal(tokens, token(RSA, tenant=tenant))

    assert isinstance(error, PermissionDeniedError)
    assert error.cause == "no_tenant"


@requirement("tenants:tokens")
async def test_clocks_may_differ_by_as_much_as_is_allowed() -> None:
    now = datetime.now(UTC)
    async with running_issuer(RSA) as issuer, knowing(issuer) as tokens:
        late = token(RSA, exp=now - timedelta(seconds=15))
        early = token(RSA, nbf=now + timedelta(seconds=15), iat=now + timedelta(seconds=15))
        assert await tokens.tenant_of(late, PATIENCE_S) == "acme"
        assert await tokens.tenant_of(early, PATIENCE_S) == "acme"


@requirement("tenants:tokens")
async def test_a_new_key_is_found_by_its_first_token() -> None:
    async with running_issuer(RSA) as issuer, knowing(issuer) as tokens:
        await tokens.tenant_of(token(RSA), PATIENCE_S)
        new = ec_key("new")
        issuer.keys = [new]

        async with asyncio.timeout(PATIENCE_S):
            while True:
                try:
                    found = await tokens.tenant_of(token(new), PATIENCE_S)
                except Unauthenticated:
                    continue
                break

        assert found == "acme"
        # A key that the issuer has taken back is gone with the same look.
        assert (await refusal(tokens, token(RSA))).cause == "unknown_token_key"


@requirement("tenants:tokens")
async def test_tokens_by_unknown_keys_do_not_flood_the_issuer() -> None:
    async with running_issuer(RSA) as issuer, knowing(issuer, refetch_interval_s=3600) as tokens:
        await tokens.tenant_of(token(RSA), PATIENCE_S)
        asked = issuer.asked_count
        stranger = token(ec_key("stranger"))

        for _ in range(50):
            assert (await refusal(tokens, stranger)).cause == "unknown_token_key"

        assert issuer.asked_count == asked == 1


@requirement("tenants:tokens")
@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (500, "no"),
        (302, ""),
        (200, "{}"),
        (200, '{"keys": []}'),
        (200, '{"keys": [{"kty": "oct", "k": "AAAA", "kid": "rsa"}]}'),
        (200, "<html>"),
        (200, " " * (MAX_BYTES + 1)),
    ],
)
async def test_keys_stay_while_their_issuer_has_none_to_give(status: int, answer: str) -> None:
    with logged("info") as log:
        async with running_issuer(RSA) as issuer, knowing(issuer) as tokens:
            await tokens.tenant_of(token(RSA), PATIENCE_S)
            issuer.status, issuer.answer = status, answer

            await _until_told(tokens, log)
            assert await tokens.tenant_of(token(RSA), PATIENCE_S) == "acme"
            for _ in range(3):
                await refusal(tokens, token(ec_key("stranger")))

        away = [line for line in log.lines() if line["event"] == "token_keys_away"]
    assert len(away) == 1


async def _until_told(tokens: Tokens, log: Logged) -> None:
    """Send tokens by an unknown key until it was logged that the issuer gives none."""
    async with asyncio.timeout(PATIENCE_S):
        while "token_keys_away" not in [line["event"] for line in log.lines()]:
            await refusal(tokens, token(ec_key("stranger")))


@requirement("tenants:tokens")
async def test_an_issuer_that_never_answered_is_not_its_callers_fault() -> None:
    async with running_issuer(RSA) as issuer:
        issuer.speaks.clear()
        async with knowing(issuer) as tokens:
            with pytest.raises(SelfUnavailableError) as caught:
                await tokens.tenant_of(token(RSA), 0.05)
            issuer.speaks.set()

            assert await tokens.tenant_of(token(RSA), PATIENCE_S) == "acme"
    assert caught.value.retry_after_s


@requirement("tenants:tokens")
async def test_a_file_of_keys_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "jwks.json"
    path.write_text(json.dumps({"keys": [RSA.public]}))
    follower = Follower(path, read_jwks, MonotonicClock())
    follower.look()
    source = JwksFile(follower)
    tokens = Tokens(settings("https://unused.test/"), source)
    assert await tokens.tenant_of(token(RSA), PATIENCE_S) == "acme"

    async with background(source.keep()):
        path.write_text(json.dumps({"keys": [EC.public]}))
        await until(lambda: list(follower.value or ()) == ["ec"])

    assert await tokens.tenant_of(token(EC), PATIENCE_S) == "acme"
    assert (await refusal(tokens, token(RSA))).cause == "unknown_token_key"


@requirement("tenants:tokens")
async def test_the_only_key_needs_no_name() -> None:
    async with running_issuer(RSA) as issuer, knowing(issuer) as tokens:
        assert await tokens.tenant_of(token(RSA, header={"kid": None}), PATIENCE_S) == "acme"


@requirement("tenants:tokens")
@pytest.mark.parametrize(
    ("others", "told"),
    [
        ({"issuer": ""}, "issuer"),
        ({"audience": ""}, "audience"),
        ({"algorithms": ()}, "algorithms"),
        ({"algorithms": "HS256"}, "algorithms"),
        ({"algorithms": ("none",)}, "algorithms"),
        ({"jwks_file": "/x"}, "jwks_file"),
        ({"jwks_url": "file:///etc/passwd"}, "jwks_url"),
    ],
)
def test_settings_that_would_believe_too_much_are_refused(
    others: dict[str, Any], told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        settings("https://issuer.test/jwks", **others)
