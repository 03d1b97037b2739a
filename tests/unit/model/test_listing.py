"""Holds a configured model to what a provider lists."""

from typing import Any

import pytest

from services.model.backend import Provider
from services.model.dialects import DEEPSEEK
from services.model.listing import MAX_NAMED, Listing, read_listing, require_listed
from services.runtime.config import ConfigError


def provider(model: str, **more: Any) -> Provider:
    return Provider(base_url="http://provider/v1", model=model, **more)


@pytest.mark.parametrize(
    ("model", "listed"),
    [
        ("m", ("l", "m")),
        ("llama3", ("llama3:latest",)),
        ("vendor/m:online", ("vendor/m",)),
    ],
)
def test_a_model_that_is_listed_is_served(model: str, listed: tuple[str, ...]) -> None:
    require_listed(provider(model), Listing(listed))


def test_an_older_name_of_the_table_is_served_although_it_is_not_listed() -> None:
    known = provider("deepseek-v4-flash", dialect=DEEPSEEK)

    require_listed(known, Listing(("deepseek-flash", "deepseek-v4-pro")))


def test_a_wrong_model_is_refused_and_the_nearest_is_named_first() -> None:
    listing = Listing(("qwen-max", "deepseek-v4-pro", "deepseek-flash"))

    with pytest.raises(ConfigError, match="it has: deepseek-flash, deepseek-v4-pro, qwen-max"):
        require_listed(provider("deepseek-flsh"), listing)


def test_of_many_models_a_few_are_named_and_the_others_counted() -> None:
    listing = Listing(tuple(f"model-{number}" for number in range(100)))

    with pytest.raises(ConfigError, match=f"and {100 - MAX_NAMED} more") as caught:
        require_listed(provider("other"), listing)

    assert "SIXHOP_MODEL__MODEL" in str(caught.value)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"object": "list", "data": [{"id": "a"}, {"id": "b"}]}, Listing(("a", "b"))),
        ([{"id": "a"}], Listing(("a",))),
        ({"data": [{"id": "a", "owned_by": "vllm"}]}, Listing(("a",), "vllm")),
        ({"data": [{"id": "a", "owned_by": "llamacpp"}]}, Listing(("a",), "llama.cpp")),
        ({"data": [{"id": "a", "owned_by": "openai"}]}, Listing(("a",))),
        ({"data": [{"id": 7}, {}, 7, None, {"id": "a"}]}, Listing(("a",))),
        ({"data": {"id": "a"}}, Listing(())),
        ({"data": []}, Listing(())),
        ({}, Listing(())),
        (None, Listing(())),
        ("a", Listing(())),
    ],
    ids=str,
)
def test_lists_of_all_shapes_are_read(body: Any, expected: Listing) -> None:
    assert read_listing(body) == expected
