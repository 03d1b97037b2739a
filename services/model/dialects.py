"""Lists the families of providers that speak OpenAI's dialect, and how each of them differs."""

import difflib
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from pydantic import JsonValue

from services.model.backend import PLAIN, Capabilities, Dialect, Prefill
from services.runtime.config import PREFIX, ConfigError
from services.runtime.topology import MODEL

Fields = Mapping[str, JsonValue]

_DEEPSEEK = Capabilities(
    tools=True,
    json_object=True,
    prefill=True,
    reasoning=True,
    wants_reasoning=True,
    window=1_000_000,
    languages=("en", "zh"),
)

DEEPSEEK = Dialect(
    name="deepseek",
    hosts=("api.deepseek.com",),
    capabilities=_DEEPSEEK,
    models={
        "deepseek-flash": _DEEPSEEK,
        # An older name of the same model, which is still served.
        "deepseek-v4-flash": _DEEPSEEK,
        "deepseek-v4-pro": _DEEPSEEK,
    },
    retired={
        "deepseek-chat": "deepseek-flash",
        "deepseek-reasoner": "deepseek-flash or deepseek-v4-pro, with thinking = true",
    },
    thinking_on={"thinking": {"type": "enabled"}},
    thinking_off={"thinking": {"type": "disabled"}},
    # It thinks unless it is told not to, and the first word then comes after seconds.
    thinks=False,
    prefill=Prefill(message={"prefix": True}, base_path="/beta"),
    tokenizer="deepseek",
)

_TEMPLATE_THINKS: Fields = {"chat_template_kwargs": {"enable_thinking": True}}
_TEMPLATE_THINKS_NOT: Fields = {"chat_template_kwargs": {"enable_thinking": False}}

_SERVER = Capabilities(
    single_tool_call=True,
    seed=True,
    json_object=True,
    json_schema=True,
    prefill=True,
    reasoning=True,
)
"""Of a server of one's own, which hands any model's text through its own grammar."""

VLLM = Dialect(
    name="vllm",
    # Whether it calls tools is decided by the flags that the server was started with.
    capabilities=_SERVER,
    thinking_on=_TEMPLATE_THINKS,
    thinking_off=_TEMPLATE_THINKS_NOT,
    prefill=Prefill(body={"continue_final_message": True, "add_generation_prompt": False}),
)

LLAMA_CPP = Dialect(
    name="llama.cpp",
    # Whether it calls tools is decided by the template of the model's file.
    capabilities=_SERVER,
    thinking_on=_TEMPLATE_THINKS,
    thinking_off=_TEMPLATE_THINKS_NOT,
    # It goes on from a last message of the assistant's without being told.
    prefill=Prefill(),
    tokenizer="server",
)

QWEN = Dialect(
    name="qwen",
    hosts=(".aliyuncs.com",),
    capabilities=Capabilities(
        tools=True,
        single_tool_call=True,
        seed=True,
        json_object=True,
        prefill=True,
        reasoning=True,
        window=131_072,
        languages=("en", "zh"),
    ),
    thinking_on={"enable_thinking": True},
    thinking_off={"enable_thinking": False},
    prefill=Prefill(message={"partial": True}),
)

OPENAI = Dialect(
    name="openai",
    hosts=("api.openai.com",),
    capabilities=Capabilities(
        tools=True,
        strict_tools=True,
        single_tool_call=True,
        seed=True,
        json_object=True,
        json_schema=True,
        late_rules=True,
        window=128_000,
    ),
    max_tokens_field="max_completion_tokens",
)

DIALECTS = {each.name: each for each in (PLAIN, DEEPSEEK, VLLM, LLAMA_CPP, QWEN, OPENAI)}
"""The one table."""


def find_dialect(name: str, base_url: str, section: str = MODEL) -> Dialect:
    """Return the dialect of this name; without one, that of the URL's host, or the plain one.

    Raises:
        ConfigError: there is no such dialect; the message names those that exist.
    """
    if name:
        if name not in DIALECTS:
            raise ConfigError(
                f"{section}.dialect = {name!r}: there is no such dialect; known: "
                f"{', '.join(nearest_first(name, DIALECTS))}"
            )
        return DIALECTS[name]
    host = urlsplit(base_url).hostname or ""
    for dialect in DIALECTS.values():
        for known in dialect.hosts:
            if host == known or (known.startswith(".") and host.endswith(known)):
                return dialect
    return PLAIN


def require_served(dialect: Dialect, model: str, section: str = MODEL) -> None:
    """Refuse a model that its provider has retired.

    Raises:
        ConfigError: the message says what to use instead.
    """
    if model in dialect.retired:
        raise ConfigError(
            f"{section}.model = {model!r} is not served any more; set "
            f"{PREFIX}{section.upper()}__MODEL to {dialect.retired[model]}"
        )


def nearest_first(name: str, known: Iterable[str]) -> list[str]:
    """Return known names, those most like a wrong one first."""

    def unlike(other: str) -> tuple[float, str]:
        return -difflib.SequenceMatcher(None, name.lower(), other.lower()).ratio(), other

    return sorted(known, key=unlike)
