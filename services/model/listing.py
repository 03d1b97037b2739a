"""Holds the configured model to the list that its provider gives."""

from dataclasses import dataclass
from typing import Any

from services.model.backend import PLAIN, Provider
from services.model.dialects import DIALECTS, nearest_first
from services.model.http import HttpDoor
from services.model.refusal import Reason
from services.runtime.config import ConfigError
from services.runtime.errors import SixhopError
from services.runtime.telemetry import DIALECT_ADVISED, MODEL_UNCHECKED, get_logger

PATH = "/models"
MAX_BYTES = 4 << 20
"""Aggregators list hundreds of models, with prose."""
MAX_NAMED = 8
_OWNERS = {"vllm": "vllm", "llamacpp": "llama.cpp"}
"""What some servers call themselves in their list, and their dialect."""


@dataclass(frozen=True, slots=True)
class Listing:
    """Is what a provider lists."""

    models: tuple[str, ...]
    """The names of its models."""
    dialect: str = ""
    """The dialect that it tells by the way; empty when it tells none."""


async def check_model(provider: Provider, door: HttpDoor) -> None:
    """Ask the provider for its models, and refuse to start with one that it does not have.

    One that cannot list, is away, or is slower than `provider.models_timeout_s` is only warned of:
    it may be well when the first call comes.

    Raises:
        ConfigError: the provider has other models; they are named, the nearest first.
    """
    if not provider.models_timeout_s:
        return
    url = f"{provider.base_url}{PATH}"
    try:
        listed = await door.ask(
            "GET", url, max_bytes=MAX_BYTES, timeout_s=provider.models_timeout_s
        )
    except (SixhopError, TimeoutError) as error:
        _tell(provider, error)
        return
    listing = read_listing(listed)
    if not listing.models:
        get_logger().warning(
            MODEL_UNCHECKED, model=provider.model, problem="the provider lists no models"
        )
        return
    require_listed(provider, listing)
    if listing.dialect and provider.dialect is PLAIN:
        get_logger().info(
            DIALECT_ADVISED,
            dialect=listing.dialect,
            advice=f"set {provider.section}.dialect to use what it can do",
        )


def read_listing(body: Any) -> Listing:
    """Return what a list says; what cannot be read is left out."""
    entries = body.get("data") if isinstance(body, dict) else body
    known = (
        [each for each in entries if isinstance(each, dict)] if isinstance(entries, list) else []
    )
    names = [each["id"] for each in known if isinstance(each.get("id"), str)]
    owners = {_OWNERS.get(str(each.get("owned_by")), "") for each in known} - {""}
    dialect = owners.pop() if len(owners) == 1 else ""
    return Listing(tuple(names), dialect if dialect in DIALECTS else "")


def require_listed(provider: Provider, listing: Listing) -> None:
    """Refuse a model that is not there.

    A name may have a tag behind a colon, which some lists have and some calls leave out; and a name
    of the table may be an older one of a model that is listed by another.

    Raises:
        ConfigError: it is not; the message names those that are, the nearest first.
    """
    model, names = provider.model, listing.models
    bare = {name.partition(":")[0] for name in names}
    if model in names or model in bare or model.partition(":")[0] in names:
        return
    if model in provider.dialect.models:
        return
    named = nearest_first(model, names)[:MAX_NAMED]
    more = f" and {len(names) - len(named)} more" if len(names) > len(named) else ""
    raise ConfigError(
        f"{provider.section}.model = {model!r}: {provider.base_url} has no such model; it has: "
        f"{', '.join(named)}{more}; set {provider.model_setting} to one of them, or "
        f"{provider.section}.models_timeout_s to 0 where the list is not complete"
    )


def _tell(provider: Provider, error: SixhopError | TimeoutError) -> None:
    problem = f"the provider has not listed its models in {provider.models_timeout_s:g} s"
    write = get_logger().warning
    if isinstance(error, SixhopError):
        problem = error.message
        origin = error.origin
        if origin is not None and origin.reason == Reason.PROVIDER_KEY_REFUSED:
            # It will refuse every call: nobody should have to look for this line.
            write = get_logger().error
        elif origin is not None and origin.code in ("HTTP_404", "HTTP_405", "HTTP_501"):
            problem = "the provider does not list its models"
    write(MODEL_UNCHECKED, model=provider.model, problem=problem)
