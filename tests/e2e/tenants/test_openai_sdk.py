"""Tests what OpenAI's client makes of keys that are none, and of a tenant's limits."""

from typing import Any

import openai
import pytest
from openai import OpenAI

from tests.e2e.tenants.house import House
from tests.requirements import requirement

HELLO: Any = {"model": "probe_stream", "messages": [{"role": "user", "content": "Go."}]}


@requirement("http:client-errors")
def test_an_unknown_key_and_a_limit_are_the_clients_own_types(house: House) -> None:
    url = f"{house.suite.url}/v1"
    with OpenAI(base_url=url, api_key="none") as stranger:
        with pytest.raises(openai.AuthenticationError) as unknown:
            stranger.chat.completions.create(**HELLO)
    with OpenAI(base_url=url, api_key=house.key("picky")) as picky:
        with pytest.raises(openai.PermissionDeniedError):
            picky.chat.completions.create(**HELLO)
    with OpenAI(base_url=url, api_key=house.key("rated_sdk"), max_retries=0) as rated:
        rated.chat.completions.create(**HELLO)
        with pytest.raises(openai.RateLimitError) as limited:
            rated.chat.completions.create(**HELLO)

    assert unknown.value.code == "invalid_api_key"
    assert limited.value.code == "rate_limit_exceeded"
    assert limited.value.response.headers["x-should-retry"] == "true"
    assert int(limited.value.response.headers["retry-after"]) > 0
