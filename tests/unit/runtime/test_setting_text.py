"""Holds the names and values of settings to how their users write them."""

from enum import StrEnum

import pytest

from services.runtime.setting_text import SettingError, named, nearest, refusal, shown


class Colour(StrEnum):
    """Is one of two."""

    RED = "red"
    BLUE = "blue"


def test_a_refusal_tells_key_value_variable_and_what_to_write() -> None:
    text = refusal(("calls", "tool", "step_timeout_s"), -1.0, "write a number above 0")

    assert text == (
        "[calls.tool] step_timeout_s = -1 (SIXHOP_CALLS__TOOL__STEP_TIMEOUT_S): write a number "
        "above 0"
    )


def test_a_wrong_item_is_told_apart_from_its_list() -> None:
    text = refusal(("retry", "retry_on"), "FOO", "no error has this reason", item=True)

    assert text.startswith('[retry] retry_on has "FOO" (SIXHOP_RETRY__RETRY_ON): ')


@pytest.mark.parametrize("path", [("operator", "key"), ("model", "api_key"), ("x", "redis_url")])
def test_a_secret_is_not_shown_whatever_it_holds(path: tuple[str, ...]) -> None:
    assert "sesame" not in refusal(path, "sesame", "write another")


def test_a_name_is_that_of_the_file_and_that_of_the_environment() -> None:
    assert named(("log", "level")) == "[log] level (SIXHOP_LOG__LEVEL)"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("soon", '"soon"'),
        # The environment knows text only.
        ("99", "99"),
        ("-0.5", "-0.5"),
        ("1s", '"1s"'),
        (True, "true"),
        (float("inf"), "inf"),
        (["a", 1], '["a", 1]'),
        (frozenset({"b", "a"}), '["a", "b"]'),
        (Colour.RED, '"red"'),
        ({"a": object}, '{"a": "<class \'object\'>"}'),
    ],
)
def test_a_value_is_shown_as_a_file_has_it(value: object, text: str) -> None:
    assert shown(value) == text


def test_the_nearest_name_is_offered_or_all_of_them() -> None:
    assert nearest("modle", ["model", "tool"]) == "; did you mean model?"
    assert nearest("xyz", ["model", "tool"]) == "; known: model, tool"


def test_an_error_of_a_setting_tells_what_it_knows_when_nobody_adds_its_section() -> None:
    assert str(SettingError("keys", "a", "leave it out", item=True)) == 'keys has "a": leave it out'
