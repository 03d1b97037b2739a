"""Reads the settings of the model hop as files and the environment give them."""

from pathlib import Path

import pytest

from services.model.backend import Capabilities
from services.model.config import ModelSettings
from services.runtime.config import ConfigError, load_config

KEY = "sk-secret-1234567890"


def settings(**environ: str) -> ModelSettings:
    named = {f"SIXHOP_MODEL__{name.upper()}": value for name, value in environ.items()}
    return load_config(environ=named).section("model", ModelSettings)


def test_without_a_provider_the_embedded_model_is_meant() -> None:
    found = settings(api_key="made-by-up")

    provider = found.provider("127.0.0.1:7410")

    assert found.local
    assert provider.base_url == "http://127.0.0.1:7410/v1"
    assert provider.model == "SmolLM2-135M-Instruct"
    assert provider.api_key == "made-by-up"
    assert found.output_limit == 128
    assert found.capabilities(Capabilities()).languages == ("en",)
    assert found.capabilities(Capabilities()).window == 2048


def test_the_embedded_model_is_never_taken_for_more() -> None:
    found = settings()

    assert found.label("SmolLM2-135M-Instruct") == "SmolLM2-135M-Instruct (local demo model)"
    assert found.label("qwen3-0.6b") == "qwen3-0.6b (local)"


def test_three_settings_make_any_provider_the_one_that_is_asked() -> None:
    found = settings(base_url="https://api.example.com/v1/", api_key=KEY, model="flash")

    provider = found.provider("127.0.0.1:7410")

    assert not found.local
    assert (provider.base_url, provider.model, provider.api_key) == (
        "https://api.example.com/v1",
        "flash",
        KEY,
    )
    assert found.output_limit == 1024
    assert found.label("flash-2") == "flash-2"


def test_lists_and_objects_come_from_the_environment_too() -> None:
    found = settings(
        languages="en, zh", extra_body='{"thinking": {"type": "disabled"}}', backend_dirs="/a,/b"
    )

    assert found.languages == ("en", "zh")
    assert found.extra_body == {"thinking": {"type": "disabled"}}
    assert found.backend_dirs == (Path("/a"), Path("/b"))


def test_a_key_may_lie_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(f"{KEY}\n", encoding="utf-8")

    assert settings(api_key_file=str(file)).provider("x:1").api_key == KEY


def test_the_end_of_an_url_may_be_the_whole_path() -> None:
    found = settings(base_url="https://api.example.com/v1/chat/completions", model="m")

    assert found.provider("x:1").base_url == "https://api.example.com/v1"


@pytest.mark.parametrize(
    ("environ", "named"),
    [
        ({"base_url": "https://api.example.com/v1"}, "SIXHOP_MODEL__MODEL"),
        ({"base_url": "api.example.com", "model": "m"}, "model.base_url"),
        ({"base_url": "ftp://api.example.com", "model": "m"}, "model.base_url"),
        ({"base_url": f"https://me:{KEY}@api.example.com", "model": "m"}, "password"),
        ({"base_url": f"https://api.example.com?key={KEY}", "model": "m"}, "model.extra_body"),
        ({"api_key": f"{KEY}\nX-Evil: 1"}, "model.api_key"),
        ({"api_key": f"„{KEY}“"}, "model.api_key"),
        ({"api_key_file": "/does/not/exist"}, "model.api_key_file"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name_and_without_secrets(
    environ: dict[str, str], named: str
) -> None:
    found = settings(**environ)

    with pytest.raises(ConfigError) as caught:
        found.provider("127.0.0.1:7410")

    assert named in str(caught.value)
    assert KEY not in str(caught.value)


def test_the_model_that_stands_in_names_its_own_settings() -> None:
    provider = settings(base_url="https://api.example.com/v1", model="m").provider(
        "x:1", "model_backup"
    )

    assert provider.key_setting == "SIXHOP_MODEL_BACKUP__API_KEY"
    assert provider.url_setting == "SIXHOP_MODEL_BACKUP__BASE_URL"
    assert provider.unreachable_hint == "is SIXHOP_MODEL_BACKUP__BASE_URL right?"
    with pytest.raises(ConfigError, match="SIXHOP_MODEL_BACKUP__MODEL"):
        settings(base_url="https://api.example.com/v1").provider("x:1", "model_backup")


def test_the_embedded_model_can_be_named() -> None:
    found = settings(base_url="embedded")

    assert found.local
    assert found.provider("127.0.0.1:7410").base_url == "http://127.0.0.1:7410/v1"


def test_settings_and_provider_do_not_show_their_key() -> None:
    found = settings(api_key=KEY)

    assert KEY not in repr(found)
    assert KEY not in repr(found.provider("127.0.0.1:7410"))


def test_a_misspelled_setting_is_refused() -> None:
    with pytest.raises(ConfigError, match="base_url"):
        settings(base_ulr="https://api.example.com")
