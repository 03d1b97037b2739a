"""Finds how a provider differs, by its host or by what the settings say."""

import pytest

from services.model.backend import Capabilities
from services.model.dialects import DIALECTS, find_dialect, nearest_first
from services.runtime.config import ConfigError
from tests.unit.model.test_config import settings

ADDRESS = "127.0.0.1:7410"


@pytest.mark.parametrize(
    ("name", "url", "expected"),
    [
        ("", "https://api.deepseek.com", "deepseek"),
        ("", "https://api.deepseek.com/v1", "deepseek"),
        ("", "https://dashscope.aliyuncs.com/compatible-mode/v1", "qwen"),
        ("", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "qwen"),
        ("", "https://api.openai.com/v1", "openai"),
        ("", "http://127.0.0.1:8000/v1", "plain"),
        ("", "https://api.deepseek.com.example.org/v1", "plain"),
        ("", "https://notaliyuncs.com/v1", "plain"),
        ("vllm", "https://api.deepseek.com", "vllm"),
    ],
)
def test_a_dialect_goes_by_its_name_and_else_by_the_host(
    name: str, url: str, expected: str
) -> None:
    assert find_dialect(name, url).name == expected


def test_an_unknown_dialect_is_refused_and_the_nearest_is_named_first() -> None:
    with pytest.raises(ConfigError, match="known: deepseek, "):
        find_dialect("deepsek", "https://host/v1")


def test_names_are_told_nearest_first() -> None:
    assert nearest_first("deepseek-v4-por", ["qwen", "deepseek-flash", "deepseek-v4-pro"]) == [
        "deepseek-v4-pro",
        "deepseek-flash",
        "qwen",
    ]


@pytest.mark.parametrize("retired", ["deepseek-chat", "deepseek-reasoner"])
def test_a_retired_model_is_refused_with_what_to_use_instead(retired: str) -> None:
    found = settings(base_url="https://api.deepseek.com", model=retired)

    with pytest.raises(ConfigError, match="SIXHOP_MODEL__MODEL to deepseek-flash"):
        found.provider(ADDRESS)


def test_another_provider_may_serve_a_model_of_that_name() -> None:
    found = settings(base_url="http://127.0.0.1:8000/v1", model="deepseek-chat")

    assert found.provider(ADDRESS).model == "deepseek-chat"


@pytest.mark.parametrize("model", ["deepseek-flash", "deepseek-v4-pro"])
def test_what_a_known_model_can_do_is_known(model: str) -> None:
    provider = settings(base_url="https://api.deepseek.com", model=model).provider(ADDRESS)

    can = provider.can
    assert (can.tools, can.prefill, can.wants_reasoning, can.window) == (True, True, True, 10**6)
    assert provider.thinks is False
    assert provider.dialect.tokenizer == "deepseek"


def test_a_provider_that_nobody_knows_is_trusted_with_nothing_special() -> None:
    provider = settings(base_url="http://127.0.0.1:8000/v1", model="m").provider(ADDRESS)

    assert provider.can == Capabilities()
    assert provider.thinks is None


def test_the_settings_overrule_what_is_known() -> None:
    found = settings(
        base_url="https://api.deepseek.com",
        model="deepseek-flash",
        tools="false",
        json_schema="true",
        prefill="false",
        wants_reasoning="false",
        reasoning="false",
        window="4096",
        languages="en",
        thinking="true",
        max_tokens_field="max_completion_tokens",
    )

    provider = found.provider(ADDRESS)

    can = provider.can
    assert (can.tools, can.json_schema, can.prefill, can.wants_reasoning, can.reasoning) == (
        False,
        True,
        False,
        False,
        False,
    )
    assert (can.window, can.languages) == (4096, ("en",))
    assert provider.thinks is True
    assert provider.max_tokens_field == "max_completion_tokens"


def test_the_embedded_model_calls_no_tools() -> None:
    provider = settings(api_key="k").provider(ADDRESS)

    assert provider.dialect is DIALECTS["llama.cpp"]
    assert not provider.can.tools
    assert provider.can.json_schema
