"""Defines which tokens of others the gateway believes."""

from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, model_validator

from services.runtime.sections import Section, split_names
from services.runtime.setting_text import SettingError

Algorithm = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
]
"""Those with a public key. A secret that both sides know (HS256) is no way to let others in:
whoever can check such a token can write one; and `none` is no signature."""


class JwtSettings(Section):
    """Says whose tokens are believed, and what in them names the tenant."""

    jwks_url: str = ""
    """Where the issuer publishes the keys that it signs with, as a JWK set; `https://`, because
    whoever can change what comes from there can let anybody in. Empty takes the file."""
    jwks_file: Path | None = None
    """A file with the same; one that changes is read again within a second."""
    issuer: str = ""
    """Who must have written a token (`iss`), exactly as it stands there."""
    audience: str = ""
    """For whom it must be meant (`aud`): a token for another service must not open this door."""
    tenant_claim: str = Field(default="tenant", min_length=1, max_length=100)
    """The claim that names the tenant; where tokens have none of their own, `sub` or `azp` may
    do."""
    algorithms: Annotated[tuple[Algorithm, ...], BeforeValidator(split_names)] = ("RS256", "ES256")
    """The ways of signing that are believed; the two that nearly all issuers use. A key without one
    of its own (`alg`) counts as RS256, or as what its curve says."""
    clock_skew_s: float = Field(default=30.0, ge=0, le=600)
    """How far the issuer's clock may be from ours, seconds."""
    refresh_interval_s: float = Field(default=300.0, ge=1, le=86_400)
    """How often the keys are fetched again, seconds: so long, a key that its issuer has withdrawn
    still counts."""
    refetch_interval_s: float = Field(default=10.0, ge=1, le=3600)
    """How soon a token by an unknown key may have them fetched out of turn again, seconds: often
    enough for a new key, too seldom to be an attack on the issuer."""

    @property
    def enabled(self) -> bool:
        """Return whether any token is believed."""
        return bool(self.jwks_url) or self.jwks_file is not None

    @model_validator(mode="after")
    def _whole(self) -> "JwtSettings":
        if not self.enabled:
            return self
        if self.jwks_url and self.jwks_file is not None:
            raise SettingError("jwks_file", self.jwks_file, "leave it out, or jwks_url")
        if self.jwks_url and not _is_web_address(self.jwks_url):
            raise SettingError("jwks_url", self.jwks_url, "write an address such as https://a/jwks")
        for key in ("issuer", "audience"):
            if not getattr(self, key):
                advice = "name it: without, tokens that were made for others would open this door"
                raise SettingError(key, "", advice)
        if not self.algorithms:
            raise SettingError("algorithms", self.algorithms, "name one at least, such as RS256")
        return self


def _is_web_address(text: str) -> bool:
    parts = urlsplit(text)
    return parts.scheme in ("http", "https") and bool(parts.hostname)
