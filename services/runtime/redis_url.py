"""Holds the address of a Redis to being one where it is read, so that nobody starts without."""

from typing import Annotated

from pydantic import AfterValidator, SecretStr
from pydantic_core import PydanticCustomError


def _is_address(url: SecretStr) -> SecretStr:
    text = url.get_secret_value()
    if text:
        # Ten megabytes and a tenth of a second that only those pay who name one.
        from redis.asyncio.connection import parse_url

        try:
            parse_url(text)
        except ValueError:
            # What it says itself may hold a part of the password.
            raise PydanticCustomError(
                "no_redis",
                "it is no address of a Redis; write one such as redis://host:6379/0, and signs "
                "that mean something in it, such as / in a password, as %2F",
            ) from None
    return url


RedisUrl = Annotated[SecretStr, AfterValidator(_is_address)]
"""Where a Redis is, such as `redis://host:6379/0`, or nothing."""
