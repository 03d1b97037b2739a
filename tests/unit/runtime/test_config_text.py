"""Tests that a configuration is written with its meaning, and read back as it was."""

import io
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from services.model.config import ModelSettings
from services.model.local.config import LlmSettings
from services.runtime.config import RUNTIME_SECTIONS, Config, HopSettings, load_config
from services.runtime.config_text import (
    HIDDEN,
    field_docs,
    own_text,
    section_text,
    shared_text,
    write_own,
)
from services.runtime.policies.bulkhead import BulkheadConfig, GroupSize
from services.runtime.policy_settings import policy_settings
from tests.unit.runtime.checks.configuring import configured

CHANGED = {
    "DEADLINE__SHARE": "0.5",
    "CALLS__MODEL__FIRST_CONTENT_TIMEOUT_S": "4",
    "ENGINE__ENABLED": "true",
    "RETRY__RETRY_ON": "CANCELLED,NO_ANSWER",
    "BULKHEAD__CORE__EXPECTED_QPS": "40",
    "BULKHEAD__CORE__EXPECTED_LATENCY_S": "0.2",
    "BULKHEAD__MODE": "observe",
    "LIMIT__GRADIENT__GROWTH": "3",
    "MODEL__EXTRA_BODY": '{"thinking": {"type": "disabled"}, "top_k": null, "it\'s": "\\u00e9"}',
    "MODEL__BACKEND_DIRS": "/a, /b c",
}


def values(config: Config) -> dict[str, Any]:
    """Return all that holds."""
    policies = policy_settings(config)
    return {
        **{name: getattr(config, name) for name in RUNTIME_SECTIONS},
        **{field.name: getattr(policies, field.name) for field in fields(policies)},
        "model": config.section("model", ModelSettings),
    }


@pytest.mark.parametrize("settings", [{}, CHANGED])
def test_what_is_written_is_read_back_as_it_was(settings: dict[str, str], tmp_path: Path) -> None:
    config = configured(**settings)
    file = tmp_path / "sixhop.toml"

    text = shared_text(config) + "\n" + own_text("model", ModelSettings, config)
    file.write_text(text, encoding="utf-8")

    again = load_config(file, {})
    assert values(again) == values(config)
    assert set(tomllib.loads(text)) == {*values(config), "tenants"}


def test_a_setting_stands_under_what_it_means() -> None:
    text = own_text("model", ModelSettings, configured())

    assert (
        "# The most tokens that one answer may have; 0 takes 128 for the embedded model, else "
        "1024.\nmax_output_tokens = 0\n" in text
    )
    assert text.startswith("# Says which model answers, and how it is reached.\n[model]\n")


def test_what_differs_is_shown_with_its_default_even_in_a_table() -> None:
    text = shared_text(configured(CALLS__TOOL__STEP_TIMEOUT_S="21", LIMIT__MAX_INFLIGHT="9"))

    assert "# Default: 20.0\nstep_timeout_s = 21.0\n" in text
    assert "# Default: 256\nmax_inflight = 9\n" in text
    assert text.count("# Default:") == 2


def test_what_is_unset_stays_a_comment() -> None:
    assert "\n# api_key_file =\n" in own_text("model", ModelSettings, configured())


@pytest.mark.parametrize(
    ("kind", "variables"),
    [
        (ModelSettings, {"API_KEY": "hush"}),
        (ModelSettings, {"EXTRA_BODY": '{"auth": {"api_key": "hush"}, "tokens": ["x"]}'}),
        (LlmSettings, {"API_KEY": "hush"}),
    ],
)
def test_keys_are_not_shown(kind: type[HopSettings], variables: dict[str, str]) -> None:
    config = configured(**{f"MODEL__{name}": value for name, value in variables.items()})

    text = section_text("model", config.section("model", kind))

    assert "hush" not in text
    assert HIDDEN in text
    tomllib.loads(text)


def test_a_key_that_is_empty_is_shown_as_empty() -> None:
    assert '\n# api_key = ""' in own_text("model", ModelSettings, configured())
    assert str(SecretStr("x")) not in own_text("model", ModelSettings, configured())


def test_the_docstrings_of_inherited_settings_come_with_them() -> None:
    assert list(field_docs(LlmSettings))[:2] == ["host", "port"]
    assert field_docs(LlmSettings)["port"] == field_docs(HopSettings)["port"]
    assert field_docs(GroupSize)["permits"].startswith("Calls under way at once")
    assert set(field_docs(BulkheadConfig)) == {field.name for field in fields(BulkheadConfig)}


def test_a_room_writes_its_sections_or_what_is_wrong_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, err = io.StringIO(), io.StringIO()
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setattr("sys.stderr", err)
    good, bad = tmp_path / "good.toml", tmp_path / "bad.toml"
    good.write_text("[llm]\nthreads = 3\n", encoding="utf-8")
    bad.write_text("[llm]\nthread = 3\n", encoding="utf-8")
    kinds: dict[str, type[HopSettings]] = {"model": ModelSettings, "llm": LlmSettings}

    codes = [write_own(kinds, good), write_own(kinds, bad)]

    assert codes == [0, 2]
    assert tomllib.loads(out.getvalue())["llm"]["threads"] == 3
    assert (
        err.getvalue()
        == "[llm] thread (SIXHOP_LLM__THREAD) is not a setting; did you mean threads?\n"
    )
