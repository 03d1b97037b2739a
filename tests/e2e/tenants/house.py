"""Runs a suite whose gateway knows tenants, and knows their keys and tokens."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from tests.e2e.conftest import QUIET
from tests.e2e.suite import Suite, running_suite
from tests.e2e.tenants.asking import put_key
from tests.redis_server import RedisServer, running_redis

LIMITS: Mapping[str, Mapping[str, str]] = {
    # One for each door, because what one test counts must not be what another has used.
    "rated_grpc": {"REQUESTS_PER_MINUTE": "3"},
    "rated_http": {"REQUESTS_PER_MINUTE": "3"},
    "rated_sdk": {"REQUESTS_PER_MINUTE": "1"},
    "debtor_grpc": {"TOKENS_PER_MINUTE": "1"},
    "debtor_http": {"TOKENS_PER_MINUTE": "1"},
    "shared": {"REQUESTS_PER_MINUTE": "5"},
    "spending": {"TOKENS_PER_MINUTE": "1"},
    "orphan": {"REQUESTS_PER_MINUTE": "8"},
    "narrow": {"MAX_CONCURRENT_RUNS": "1"},
    "flooding_grpc": {"REQUESTS_PER_MINUTE": "5", "MAX_CONCURRENT_RUNS": "4"},
    "flooding_http": {"REQUESTS_PER_MINUTE": "5", "MAX_CONCURRENT_RUNS": "4"},
    "humble": {"MAX_CRITICALITY": "SHEDDABLE"},
    "picky": {"AGENTS": "orders,probe_early", "TOOLS": ""},
    "small": {"MAX_BODY_BYTES": "100000", "MAX_PROMPT_CHARS": "50"},
    "hasty": {"MAX_DEADLINE_S": "4"},
}
OPERATOR = "open-sesame-4711"
"""The operator's key: where callers need keys, nobody orders without it."""
SIGNER = ec.generate_private_key(ec.SECP256R1())


@dataclass(slots=True)
class House:
    """Is the running suite, with whom it lets in."""

    suite: Suite
    redis: RedisServer
    keys_file: Path
    secrets: list[str] = field(default_factory=list)
    """What must never stand in a log."""
    _keys: dict[str, str] = field(default_factory=dict)

    def key(self, tenant: str) -> str:
        """Return the key of a tenant, which is good from the start on."""
        return self._keys[tenant]

    def add(self, tenant: str, *, expired: bool = False, revoked: bool = False) -> str:
        """Return a new key, of which the gateway is yet to hear."""
        key = put_key(self.keys_file, tenant, expired=expired, revoked=revoked)
        self.secrets.append(key.rpartition("-")[2])
        return key

    def prepare(self) -> None:
        """Make a key for each tenant."""
        for tenant in ("acme", *LIMITS):
            self._keys[tenant] = self.add(tenant)
        self._keys["expired"] = self.add("acme", expired=True)
        self._keys["revoked"] = self.add("acme", revoked=True)

    def token(self, **claims: object) -> str:
        """Return a token of the issuer that is believed."""
        now = datetime.now(UTC)
        usual = {
            "iss": "https://issuer.test/",
            "aud": "sixhop",
            "exp": now + timedelta(minutes=5),
            "tenant": "acme",
        }
        token = jwt.encode(usual | claims, SIGNER, algorithm="ES256", headers={"kid": "k1"})
        self.secrets.append(token.rpartition(".")[2])
        return token


@contextmanager
def running_house(folder: Path) -> Iterator[House]:
    """Run the suite while the block runs."""
    keys_file, jwks_file = folder / "keys.json", folder / "jwks.json"
    public = ECAlgorithm.to_jwk(SIGNER.public_key(), as_dict=True) | {"kid": "k1", "use": "sig"}
    jwks_file.write_text(json.dumps({"keys": [public]}))
    prepared = House(None, None, keys_file)  # type: ignore[arg-type] # it is made for what it writes first
    prepared.prepare()
    tables = {
        f"SIXHOP_TENANTS__{tenant.upper()}__{key}": value
        for tenant, limits in LIMITS.items()
        for key, value in limits.items()
    }
    settings = {
        "SIXHOP_GATEWAY__OPEN": "false",
        "SIXHOP_OPERATOR__KEY": OPERATOR,
        "SIXHOP_GATEWAY__KEYS_FILE": str(keys_file),
        "SIXHOP_GATEWAY__JWT__JWKS_FILE": str(jwks_file),
        "SIXHOP_GATEWAY__JWT__ISSUER": "https://issuer.test/",
        "SIXHOP_GATEWAY__JWT__AUDIENCE": "sixhop",
    }
    with (
        running_redis(folder) as redis,
        running_suite(
            folder, **QUIET, **tables, **settings, SIXHOP_GATEWAY__QUOTA_REDIS_URL=redis.url
        ) as suite,
    ):
        prepared.suite, prepared.redis = suite, redis
        suite.provider.behave("at-once")
        yield prepared
