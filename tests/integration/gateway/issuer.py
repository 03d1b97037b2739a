"""Is an issuer of tokens: signs them, and publishes its keys over HTTP."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

ISSUER, AUDIENCE = "https://issuer.test/", "sixhop"


@dataclass(slots=True)
class SigningKey:
    """Is a pair of keys with a name."""

    name: str
    algorithm: str
    private: Any

    @property
    def public(self) -> dict[str, Any]:
        """Return the public one as it is published."""
        kind: Any = RSAAlgorithm if self.algorithm[:2] in ("RS", "PS") else ECAlgorithm
        return {
            **kind.to_jwk(self.private.public_key(), as_dict=True),
            "kid": self.name,
            "use": "sig",
            "alg": self.algorithm,
        }


def rsa_key(name: str, algorithm: str = "RS256") -> SigningKey:
    """Return a key for RSA."""
    return SigningKey(name, algorithm, rsa.generate_private_key(65537, 2048))


def ec_key(name: str) -> SigningKey:
    """Return a key for elliptic curves."""
    return SigningKey(name, "ES256", ec.generate_private_key(ec.SECP256R1()))


def token(key: SigningKey, *, header: Mapping[str, Any] | None = None, **claims: Any) -> str:
    """Return a token of acme that is good for five minutes, but for the claims given."""
    usual = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "exp": datetime.now(UTC) + timedelta(minutes=5),
        "tenant": "acme",
        "jti": secrets.token_hex(4),
    }
    given = {name: value for name, value in (usual | claims).items() if value is not None}
    headers = {k: v for k, v in ({"kid": key.name} | dict(header or {})).items() if v is not None}
    return jwt.encode(given, key.private, algorithm=key.algorithm, headers=headers)


@dataclass(slots=True)
class Issuer:
    """Publishes keys."""

    keys: list[SigningKey] = field(default_factory=list)
    url: str = ""
    asked_count: int = 0
    answer: str = ""
    """Sent in place of the keys, when it is not empty."""
    status: int = 200
    speaks: asyncio.Event = field(default_factory=asyncio.Event)
    """Until it is set, no answer comes."""

    async def serve(self, request: web.Request) -> web.Response:
        """Answer."""
        self.asked_count += 1
        await self.speaks.wait()
        if self.answer or self.status != 200:
            return web.Response(text=self.answer, status=self.status)
        return web.json_response({"keys": [each.public for each in self.keys]})


@asynccontextmanager
async def running_issuer(*keys: SigningKey) -> AsyncIterator[Issuer]:
    """Publish keys on a port of its own while the block runs."""
    issuer = Issuer(list(keys))
    issuer.speaks.set()
    app = web.Application()
    app.router.add_get("/jwks", issuer.serve)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        host, port = runner.addresses[0][:2]
        issuer.url = f"http://{host}:{port}/jwks"
        yield issuer
    finally:
        issuer.speaks.set()
        await runner.cleanup()
