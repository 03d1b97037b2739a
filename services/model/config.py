"""Declares the settings of the model hop, and what they mean for the provider."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import orjson
from pydantic import BeforeValidator, Field, JsonValue, SecretStr

from services.model.backend import Capabilities, Dialect, Provider, Tokenizer
from services.model.dialects import LLAMA_CPP, find_dialect, require_served
from services.model.fitting import TimeNote
from services.model.local.config import (
    LANGUAGES,
    MAX_OUTPUT_TOKENS,
    MODEL_NAME,
    WINDOW,
)
from services.model.requests import PATH
from services.runtime.config import (
    EMBEDDED,
    PREFIX,
    ConfigError,
    Folders,
    HopSettings,
    Names,
)
from services.runtime.sections import MissingFileError
from services.runtime.topology import MODEL

PROVIDER_MAX_OUTPUT_TOKENS = 1024
NOTHING_SPECIAL = Capabilities()
EMBEDDED_CAN = Capabilities(
    seed=True,
    json_object=True,
    json_schema=True,
    prefill=True,
    window=WINDOW,
    languages=LANGUAGES,
)
"""What the packaged weights can do: their template knows no tools."""


def _parsed(value: Any) -> Any:
    return orjson.loads(value) if isinstance(value, str) else value


Fields = Annotated[dict[str, JsonValue], BeforeValidator(_parsed)]


class ModelSettings(HopSettings):
    """Says which model answers, and how it is reached."""

    base_url: str = ""
    """Where the provider's API begins, such as `https://api.deepseek.com`; `embedded` is the small
    model that is shipped. Empty takes it too in [model], and in [model_backup] means that there is
    none."""
    api_key: SecretStr = SecretStr("")
    """The provider's key; better in the environment than in a file that is shared."""
    api_key_file: Path | None = None
    """A file that holds the key, for secrets that are mounted; used when `api_key` is empty."""
    model: str = ""
    """The model's name at the provider; only the embedded model may be left unnamed."""
    backend: str = "openai_compatible"
    """How to speak with the provider: the name of a backend."""
    dialect: str = ""
    """How the provider differs from others of its kind, such as `deepseek`, `vllm`, `llama.cpp` or
    `qwen`; empty goes by the host of `base_url`, and trusts one that is not known with nothing
    special."""
    backend_dirs: Folders = ()
    """Folders with more backends, one file each."""
    max_written_tokens: int = Field(default=100_000, ge=1)
    """The longest answer in tokens, reasoning included; a provider that writes more minds no limit
    that it is given, and is cut off."""
    max_output_tokens: int = Field(default=0, ge=0, le=1_000_000)
    """The most tokens that one answer may have; 0 takes 128 for the embedded model, else 1024."""
    max_tokens_field: Literal["", "max_tokens", "max_completion_tokens"] = ""
    """What the provider calls that limit; empty leaves it to the dialect."""
    max_prompt_bytes: int = Field(default=1 << 20, gt=0)
    """The longest prompt that is sent on, over all messages; far above any model's window."""
    window: int = Field(default=0, ge=0)
    """The tokens that prompt and answer may have together; 0 takes what is known of the model."""
    languages: Names = ()
    """The languages that the model writes well, as ISO 639 codes; empty takes what is known."""
    tools: bool | None = None
    """Whether the model calls tools; as the next nine, unset takes what is known of it."""
    strict_tools: bool | None = None
    """Whether it keeps to the schema of a tool exactly when told to."""
    single_tool_call: bool | None = None
    """Whether it asks for one tool at most when told to."""
    seed: bool | None = None
    """Whether it takes a seed."""
    json_object: bool | None = None
    """Whether it writes JSON when told to."""
    json_schema: bool | None = None
    """Whether it holds its answer to a JSON schema."""
    prefill: bool | None = None
    """Whether it goes on from an assistant's message that it is given."""
    late_rules: bool | None = None
    """Whether it takes system messages behind others; without, it gets them all in the first."""
    reasoning: bool | None = None
    """Whether it may send its reasoning before its answer."""
    wants_reasoning: bool | None = None
    """Whether it wants its own earlier reasoning back with tool calls."""
    thinking: bool | None = None
    """Whether the model is told to think before it answers; unset leaves it to the dialect, which
    turns it off where it is on by itself: the first word would come too late."""
    tokenizer: Tokenizer | Literal[""] = ""
    """Who counts a prompt's tokens: `deepseek` by its vocabulary, `server` by the provider's
    `/tokenize`, `estimate`; empty leaves it to the dialect."""
    extra_body: Fields = Field(default_factory=dict)
    """More fields of each request, such as `{"thinking": {"type": "disabled"}}`; null removes
    one that is sent otherwise."""
    connect_timeout_s: float = Field(default=2.0, gt=0, le=30)
    """The longest wait for a connection, a free place in the pool included, seconds; what takes
    longer to reach is away."""
    models_timeout_s: float = Field(default=2.0, ge=0, le=10)
    """How long the start waits for the provider's list, in which `model` must stand, seconds; a
    provider that is away must not hold the hop up. 0 does not ask, for lists that are not
    complete."""
    max_connections: int = Field(default=0, ge=0, le=10_000)
    """How many connections to the provider may be open at a time; 0 takes as many as the core group
    has permits."""
    min_event_interval_s: float = Field(default=0.04, ge=0, le=1)
    """Pieces of an answer are at least this far apart, seconds; each costs every hop on its way,
    and nobody reads faster."""

    health_port: int | None = Field(default=None, ge=0, le=65535)
    """Where `GET /v1/health` and `GET /livez` are served over HTTP; 0 is nowhere. Left out it is
    ten above the hop's own port where that is the usual one (7414, 7415 for the model that stands
    in), and nowhere elsewhere: two must not meet."""
    time_note: Literal["auto", "always", "short", "never"] = "auto"
    """When a prompt tells the model how many seconds it has: `always`; `short`, only with the wish
    for a shorter answer; or `never`. `auto` is `short` for the embedded model, because small models
    talk about what they are told, and `always` for others."""

    @property
    def told_time(self) -> TimeNote:
        """Return when a prompt tells the time."""
        if self.time_note != "auto":
            return self.time_note
        return "short" if self.local else "always"

    @property
    def local(self) -> bool:
        """Return whether the embedded model is meant."""
        return self.base_url in ("", EMBEDDED)

    @property
    def output_limit(self) -> int:
        """Return the most tokens that one answer may have."""
        default = MAX_OUTPUT_TOKENS if self.local else PROVIDER_MAX_OUTPUT_TOKENS
        return self.max_output_tokens or default

    def capabilities(self, backend: Capabilities, section: str = MODEL) -> Capabilities:
        """Return what the model can do: the settings before the dialect, that before the backend.

        Raises:
            ConfigError: there is no such dialect.
        """
        known = self._known(self._dialect(section), backend)
        return Capabilities(
            tools=_either(self.tools, known.tools),
            strict_tools=_either(self.strict_tools, known.strict_tools),
            single_tool_call=_either(self.single_tool_call, known.single_tool_call),
            seed=_either(self.seed, known.seed),
            json_object=_either(self.json_object, known.json_object),
            json_schema=_either(self.json_schema, known.json_schema),
            prefill=_either(self.prefill, known.prefill),
            late_rules=_either(self.late_rules, known.late_rules),
            reasoning=_either(self.reasoning, known.reasoning),
            wants_reasoning=_either(self.wants_reasoning, known.wants_reasoning),
            window=self.window or known.window,
            languages=self.languages or known.languages,
        )

    def provider(
        self,
        llm_address: str,
        section: str = MODEL,
        backend: Capabilities = NOTHING_SPECIAL,
    ) -> Provider:
        """Return the provider that is meant.

        Args:
            llm_address: `host:port` of the embedded model.
            section: where these settings stand, for messages.
            backend: what the backend's models can do when nobody says else.

        Raises:
            ConfigError: the URL, the name, the dialect or the key cannot be used.
        """

        def setting(name: str) -> str:
            return f"{PREFIX}{section.upper()}__{name}"

        own_url = f"http://{llm_address}/v1"
        dialect, model = self._dialect(section), self._model_name(section)
        require_served(dialect, model, section)
        provider = Provider(
            base_url=own_url if self.local else _checked_url(self.base_url, section),
            model=model,
            api_key=self._key(section),
            section=section,
            key_setting=setting("API_KEY"),
            model_setting=setting("MODEL"),
            url_setting=setting("BASE_URL"),
            unreachable_hint=f"is {setting('BASE_URL')} right?",
            dialect=dialect,
            can=self.capabilities(backend, section),
            thinks=dialect.thinks if self.thinking is None else self.thinking,
            max_tokens_field=self.max_tokens_field or dialect.max_tokens_field,
            extra_body=self.extra_body,
            connect_timeout_s=self.connect_timeout_s,
            min_event_interval_s=self.min_event_interval_s,
            models_timeout_s=0.0 if self.local else self.models_timeout_s,
            max_written_tokens=self.max_written_tokens,
        )
        if not self.local:
            return provider
        hint = f"is the embedded model running at {llm_address}?"
        return replace(provider, unreachable_hint=hint)

    def _dialect(self, section: str) -> Dialect:
        if self.local and not self.dialect:
            return LLAMA_CPP
        return find_dialect(self.dialect, self.base_url, section)

    def _known(self, dialect: Dialect, backend: Capabilities) -> Capabilities:
        """Return what is known of the model without the settings."""
        if self.local:
            return EMBEDDED_CAN
        known = dialect.models.get(self.model, dialect.capabilities)
        return backend if known == NOTHING_SPECIAL else known

    def counted_by(self, dialect: Dialect) -> Tokenizer:
        """Return who counts a prompt's tokens."""
        return self.tokenizer or dialect.tokenizer

    def label(self, served: str) -> str:
        """Return a model's name as people see it; the embedded one is never taken for more."""
        if not self.local:
            return served
        return f"{served} (local demo model)" if served == MODEL_NAME else f"{served} (local)"

    def _model_name(self, section: str) -> str:
        if not self.model and not self.local:
            raise ConfigError(
                f"{section}.model is empty; name the provider's model with "
                f"{PREFIX}{section.upper()}__MODEL"
            )
        return self.model or MODEL_NAME

    def _key(self, section: str) -> str:
        key = self.api_key.get_secret_value().strip()
        if not key and self.api_key_file is not None:
            try:
                key = self.api_key_file.read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise MissingFileError(
                    f"{section}.api_key_file = {str(self.api_key_file)!r} cannot be read: "
                    f"{type(error).__name__}"
                ) from None
        if not key.isascii() or not key.isprintable() or " " in key:
            # It would become a header. The value itself is not shown.
            raise ConfigError(f"{section}.api_key has characters that no key has; copy it again")
        return key


def _either(wanted: bool | None, known: bool) -> bool:
    return known if wanted is None else wanted


def _checked_url(text: str, section: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(
            f"{section}.base_url must be like https://host/v1, with http or https and a host"
        )
    if parts.username or parts.password:
        raise ConfigError(
            f"{section}.base_url holds a password; put the key into "
            f"{PREFIX}{section.upper()}__API_KEY"
        )
    if parts.query or parts.fragment:
        raise ConfigError(
            f"{section}.base_url must end with its path; put more into {section}.extra_body"
        )
    return text.rstrip("/").removesuffix(PATH)
