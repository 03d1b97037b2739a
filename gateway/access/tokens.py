"""Believes signed tokens of an issuer, or says why not."""

from typing import Any

import jwt

from gateway.access.jwks import KeySource
from gateway.access.jwt_settings import JwtSettings
from services.runtime.errors import PermissionDeniedError, UnauthenticatedError
from services.runtime.tenants import NAME

MAX_TOKEN_CHARS = 16_384
"""A longer token is not looked at."""
_REQUIRED = ["exp", "iss", "aud"]
_WHY: tuple[tuple[type[jwt.PyJWTError], str, str], ...] = (
    (jwt.ExpiredSignatureError, "expired_token", "it has expired; get a new one"),
    (jwt.ImmatureSignatureError, "early_token", "it is not valid yet"),
    (jwt.InvalidAudienceError, "wrong_audience", "it is meant for another service"),
    (jwt.InvalidIssuerError, "wrong_issuer", "its issuer is not the one that is believed here"),
    (jwt.MissingRequiredClaimError, "incomplete_token", f"it lacks one of {', '.join(_REQUIRED)}"),
    (jwt.InvalidAlgorithmError, "unknown_token_key", "no key that is believed here has signed it"),
    (jwt.InvalidSignatureError, "unknown_token_key", "no key that is believed here has signed it"),
)
"""What may be told of a token: nothing that stands in it, and nothing of the keys."""


class Tokens:
    """Knows tenants by the tokens of one issuer."""

    def __init__(self, settings: JwtSettings, keys: KeySource) -> None:
        """Take what is believed, and the keys that sign it."""
        self._settings = settings
        self._keys = keys

    async def tenant_of(self, token: str, within_s: float) -> str:
        """Return the tenant that a token names.

        Args:
            token: as it came.
            within_s: how long the issuer may be waited for, when the key is not known yet.

        Raises:
            UnauthenticatedError: the token is not believed.
            PermissionDeniedError: it is, and names no tenant.
            SelfUnavailableError: nobody has told us the issuer's keys yet.
        """
        claims = await self._claims(token, within_s)
        tenant = claims.get(self._settings.tenant_claim)
        if isinstance(tenant, str) and NAME.fullmatch(tenant):
            return tenant
        raise PermissionDeniedError(
            f"the token's claim {self._settings.tenant_claim} is no name of a tenant; have its "
            "issuer put one there (tenant_claim in [gateway.jwt])",
            cause="no_tenant",
        )

    async def _claims(self, token: str, within_s: float) -> dict[str, Any]:
        settings = self._settings
        if len(token) > MAX_TOKEN_CHARS:
            raise _disbelieved("unreadable_token", "it is too long")
        try:
            header = jwt.get_unverified_header(token)
            # Before the key is looked for: what cannot be believed must not have keys fetched.
            if header.get("alg") not in settings.algorithms:
                raise jwt.InvalidAlgorithmError
            key_id = header.get("kid")
            key = await self._keys.find(key_id if isinstance(key_id, str) else None, within_s)
            if key is None:
                raise jwt.InvalidSignatureError
            return jwt.decode(
                token,
                key,
                algorithms=settings.algorithms,
                audience=settings.audience,
                issuer=settings.issuer,
                leeway=settings.clock_skew_s,
                options={"require": _REQUIRED, "enforce_minimum_key_length": True},
            )
        except jwt.PyJWTError as error:
            for kind, cause, why in _WHY:
                if isinstance(error, kind):
                    raise _disbelieved(cause, why) from None
            raise _disbelieved("unreadable_token", "it cannot be read") from None


def _disbelieved(cause: str, why: str) -> UnauthenticatedError:
    return UnauthenticatedError(f"the token is not accepted: {why}", cause=cause)
