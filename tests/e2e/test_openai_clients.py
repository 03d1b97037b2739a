"""Tests the clients that people have for OpenAI: its own two, LangChain's, and curl."""

import asyncio
import json
import shutil
import time
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI
from openai import AsyncOpenAI, OpenAI
from openai.types.chat import ChatCompletionChunk, ChatCompletionMessageFunctionToolCall
from pydantic import BaseModel, SecretStr

from services.runtime.topology import GATEWAY
from tests.e2e.client import IDLE_WITHIN_S
from tests.e2e.simulators import PRIMARY_MODEL
from tests.e2e.suite import HERE
from tests.e2e.talking import (
    CUT,
    ENDLESS,
    HELLO,
    REFUSED,
    SILENT,
    TOOL,
    WORDS,
    Talk,
    named,
    run,
    talking,
    user,
)
from tests.requirements import requirement

pytestmark = pytest.mark.timeout(120)

SCRIPT = HERE / "openai_js"


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Talk]:
    """Return a suite that talks."""
    with talking(tmp_path_factory.mktemp("openai")) as started:
        yield started


@pytest.fixture(scope="module")
def client(talk: Talk) -> Iterator[OpenAI]:
    """Return OpenAI's client as people make it."""
    with OpenAI(base_url=talk.url, api_key="any") as made:
        yield made


@requirement("http:openai-python")
def test_an_answer_comes_whole(talk: Talk, client: OpenAI) -> None:
    raw = client.chat.completions.with_raw_response.create(
        model="chat", messages=user(HELLO), extra_headers=named("py-whole"), user="ann", store=True
    )

    answer = raw.parse()
    assert answer.choices[0].message.content == talk.model.whole(HELLO)
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert answer.usage.completion_tokens > 0
    assert answer.model == PRIMARY_MODEL
    assert answer._request_id == "py-whole"
    assert raw.headers["x-sixhop-agent"] == "chat"
    assert raw.headers["x-sixhop-hops"].count("given=") == 4


@requirement("http:openai-python")
def test_an_answer_comes_as_a_stream(talk: Talk, client: OpenAI) -> None:
    stream = client.chat.completions.create(
        model="chat", messages=user(HELLO), stream=True, stream_options={"include_usage": True}
    )

    chunks = list(stream)
    text = "".join(each.choices[0].delta.content or "" for each in chunks if each.choices)
    assert text == talk.model.whole(HELLO)
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens > 0


@requirement("http:openai-python")
async def test_the_asynchronous_client_does_as_the_other(talk: Talk) -> None:
    async with AsyncOpenAI(base_url=talk.url, api_key="any") as client:
        answers = await asyncio.gather(
            *(client.chat.completions.create(model="chat", messages=user(HELLO)) for _ in range(3))
        )
        stream = await client.chat.completions.create(
            model="chat", messages=user(HELLO), stream=True, max_tokens=3
        )
        reasons = [each.choices[0].finish_reason async for each in stream]
        found = [each.id async for each in client.models.list()]

    assert {each.choices[0].message.content for each in answers} == {talk.model.whole(HELLO)}
    assert reasons[-1] == "length"
    assert {"auto", "chat", "reports"} <= set(found)


@requirement("http:openai-python", "http:tool-rounds")
def test_a_round_of_tools_is_asked_for_and_gone_on_from(talk: Talk, client: OpenAI) -> None:
    first = client.chat.completions.create(model="auto", messages=user(WORDS), tools=[TOOL])
    message: Any = first.choices[0].message
    assert message.tool_calls is not None
    (call,) = message.tool_calls
    assert isinstance(call, ChatCompletionMessageFunctionToolCall)
    result: Any = {"role": "tool", "tool_call_id": call.id, "content": "sunny"}
    second = client.chat.completions.create(
        model="auto", messages=[*user(WORDS), message, result], tools=[TOOL]
    )

    assert (first.choices[0].finish_reason, call.function.name) == ("tool_calls", "weather")
    assert "city" in json.loads(call.function.arguments)
    assert second.choices[0].message.content == talk.model.whole(WORDS)
    assert second.choices[0].finish_reason == "stop"


@requirement("http:openai-python", "http:tool-rounds")
def test_a_tool_call_is_put_together_from_a_stream(client: OpenAI) -> None:
    with client.chat.completions.stream(
        model="chat", messages=user(HELLO), tools=[TOOL], tool_choice="required"
    ) as stream:
        choice = stream.get_final_completion().choices[0]

    assert choice.finish_reason == "tool_calls"
    assert [each.function.name for each in choice.message.tool_calls or ()] == ["weather"]


@requirement("http:openai-python")
def test_an_answer_has_the_form_that_was_asked_for(client: OpenAI) -> None:
    class Parcel(BaseModel):
        number: int

    answer = client.chat.completions.parse(
        model="chat", messages=user(HELLO), response_format=Parcel
    )

    assert isinstance(answer.choices[0].message.parsed, Parcel)


@requirement("http:requests-are-read-or-refused", "run:never-truncated")
def test_a_long_word_is_read_whole(talk: Talk, client: OpenAI) -> None:
    words = "Parcel 4711 went to the harbour of Shenzhen. " * 400

    answer = client.chat.completions.create(model="chat", messages=user(words))

    assert answer.choices[0].message.content == talk.model.whole(words)
    assert answer.model_extra is not None
    assert answer.model_extra["sixhop"]["degraded"] == []


@requirement("http:openai-python", "http:client-errors")
def test_errors_before_an_answer_are_the_clients_own_types(talk: Talk, client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as bad:
        client.chat.completions.create(model="chat", messages=user(HELLO), n=2)
    with pytest.raises(openai.NotFoundError) as unknown:
        client.chat.completions.create(model="nobody", messages=user(HELLO))
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("nobody")
    with pytest.raises(openai.InternalServerError) as provider:
        client.chat.completions.create(
            model="chat", messages=user(REFUSED), extra_headers=named("py-503")
        )

    assert (bad.value.param, bad.value.status_code) == ("n", 400)
    assert (unknown.value.code, unknown.value.param) == ("model_not_found", "model")
    assert provider.value.request_id == "py-503"
    assert isinstance(provider.value.body, dict)
    assert provider.value.body["hop"] == "llm"
    # What the suite has tried in vain is not tried again by the client.
    assert len(talk.suite.logged(GATEWAY, "py-503", "call_failed")) == 1


@requirement("http:openai-python", "http:client-errors")
def test_an_error_in_the_middle_of_a_stream_is_raised(client: OpenAI) -> None:
    chunks: list[ChatCompletionChunk] = []
    with pytest.raises(openai.APIError) as caught:
        chunks.extend(client.chat.completions.create(model="chat", messages=user(CUT), stream=True))

    assert chunks
    assert isinstance(caught.value.body, dict)
    assert caught.value.body["reason"] == "DEPENDENCY_FAILED"
    assert caught.value.body["hop"] == "llm"
    assert caught.value.body["remaining_ms"] > 0


@requirement("http:openai-python")
@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_waits_no_longer_ends_its_run(talk: Talk, stream: bool) -> None:
    name = f"py-slow-{stream}"
    async with AsyncOpenAI(base_url=talk.url, api_key="any", max_retries=0, timeout=0.5) as client:
        with pytest.raises(openai.APITimeoutError):
            await client.chat.completions.create(
                model="chat", messages=user(SILENT), stream=stream, extra_headers=named(name)
            )
        gone_ms = time.monotonic() * 1000

        assert await talk.left_after_s(name, gone_ms) <= IDLE_WITHIN_S


@requirement("http:openai-python")
async def test_a_client_that_leaves_a_stream_ends_its_run(talk: Talk) -> None:
    async with AsyncOpenAI(base_url=talk.url, api_key="any") as client:
        stream = await client.chat.completions.create(
            model="chat", messages=user(ENDLESS), stream=True, extra_headers=named("py-leaves")
        )
        await anext(aiter(stream))
        gone_ms = time.monotonic() * 1000
        await stream.close()

        assert await talk.left_after_s("py-leaves", gone_ms) <= IDLE_WITHIN_S


@requirement("http:responses", "http:openai-python")
def test_a_response_comes_whole_and_as_events(talk: Talk, client: OpenAI) -> None:
    class Parcel(BaseModel):
        number: int

    whole = client.responses.create(model="chat", input=HELLO, instructions="Be kind.")
    cut = client.responses.create(model="chat", input=HELLO, max_output_tokens=3)
    parsed = client.responses.parse(model="chat", input=HELLO, text_format=Parcel)
    with client.responses.stream(model="chat", input=HELLO) as stream:
        deltas = [each.delta for each in stream if each.type == "response.output_text.delta"]
        final = stream.get_final_response()

    assert whole.output_text == "".join(deltas) == final.output_text == talk.model.whole(HELLO)
    assert (whole.status, whole.model) == ("completed", PRIMARY_MODEL)
    assert cut.status == "incomplete"
    assert isinstance(parsed.output_parsed, Parcel)
    assert final.usage is not None
    assert final.usage.output_tokens > 0


@requirement("http:responses", "http:tool-rounds")
def test_a_response_asks_for_a_tool_and_goes_on_from_its_output(talk: Talk, client: OpenAI) -> None:
    tool: Any = {"type": "function", **TOOL["function"]}
    with client.responses.stream(model="auto", input=WORDS, tools=[tool]) as stream:
        first = stream.get_final_response()
    (call,) = [item for item in first.output if item.type == "function_call"]
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
    items: Any = [*user(WORDS), *first.output, result]
    second = client.responses.create(model="auto", input=items, tools=[tool])

    assert call.name == "weather"
    assert "city" in json.loads(call.arguments)
    assert second.output_text == talk.model.whole(WORDS)


@requirement("http:responses", "http:client-errors")
def test_a_response_fails_by_its_status_or_by_its_last_event(client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as stored:
        client.responses.create(model="chat", input=HELLO, previous_response_id="resp_1")
    with pytest.raises(openai.InternalServerError):
        client.responses.create(model="chat", input=REFUSED, stream=True)
    events = list(client.responses.create(model="chat", input=CUT, stream=True))

    assert stored.value.param == "previous_response_id"
    last = events[-1]
    assert last.type == "response.failed"
    assert last.response.error is not None
    assert last.response.error.code == "server_error"
    assert [each.type for each in events].count("response.failed") == 1


@pytest.fixture(scope="module")
def js(talk: Talk, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what OpenAI's JavaScript client made of everything that it was used for."""
    folder = tmp_path_factory.mktemp("js")
    for name in ("package.json", "package-lock.json", "client.mjs"):
        shutil.copy(SCRIPT / name, folder)
    run(["npm", "ci", "--no-audit", "--no-fund"], folder)
    told: dict[str, Any] = json.loads(run(["node", "client.mjs", talk.suite.url], folder))
    return told


@requirement("http:openai-javascript")
def test_javascript_has_the_answer_whole_and_as_a_stream(talk: Talk, js: dict[str, Any]) -> None:
    whole, chunks = js["whole"], js["stream"]

    assert whole["choices"][0]["finish_reason"] == "length"
    assert whole["request_id"] == "js-whole"
    text = "".join(each["choices"][0]["delta"].get("content", "") for each in chunks[:-1])
    assert text == talk.model.whole(HELLO)
    assert chunks[-1]["usage"]["completion_tokens"] > 0
    assert {"auto", "chat"} <= set(js["models"])


@requirement("http:openai-javascript", "http:tool-rounds")
def test_javascript_runs_its_tools(talk: Talk, js: dict[str, Any]) -> None:
    assert js["rounds"]["text"] == talk.model.whole(WORDS)
    assert ["city" in asked for asked in js["rounds"]["asked"]] == [True]
    (call,) = js["streamedCall"]["message"]["tool_calls"]
    assert call["function"]["name"] == "weather"
    assert js["streamedCall"]["finish_reason"] == "tool_calls"


@requirement("http:openai-javascript", "http:client-errors")
def test_javascript_has_errors_of_its_own_types(talk: Talk, js: dict[str, Any]) -> None:
    errors = js["errors"]

    assert (errors["bad"]["name"], errors["bad"]["param"]) == ("BadRequestError", "n")
    assert errors["unknown"]["name"] == "NotFoundError"
    assert errors["unknown"]["code"] == "model_not_found"
    assert (errors["provider"]["name"], errors["provider"]["told"]["hop"]) == (
        "InternalServerError",
        "llm",
    )
    assert len(talk.suite.logged(GATEWAY, "js-503", "call_failed")) == 1
    assert errors["slow"]["name"] == "APIConnectionTimeoutError"
    assert errors["cut"]["name"] == "APIError"
    assert errors["cut"]["told"]["hop"] == "llm"
    assert errors["cut"]["told"]["remaining_ms"] > 0


@requirement("http:openai-javascript", "http:responses")
def test_javascript_has_responses(talk: Talk, js: dict[str, Any]) -> None:
    told = js["responses"]

    assert (told["call"], told["second"]) == ("weather", talk.model.whole(WORDS))
    assert told["text"] == talk.model.whole(HELLO)
    assert (told["types"][0], told["types"][-1]) == ("response.created", "response.completed")


@requirement("http:openai-javascript")
async def test_javascript_that_leaves_a_stream_ends_its_run(talk: Talk, js: dict[str, Any]) -> None:
    assert await talk.left_after_s("js-leaves", js["leaving"]["left_ms"]) <= IDLE_WITHIN_S


@pytest.fixture(scope="module")
def chain(talk: Talk) -> ChatOpenAI:
    """Return LangChain's client."""
    return ChatOpenAI(
        model_name="chat",
        openai_api_base=talk.url,
        openai_api_key=SecretStr("any"),
        max_retries=0,
    )


@requirement("http:langchain")
def test_langchain_has_the_answer_whole_and_as_a_stream(talk: Talk, chain: ChatOpenAI) -> None:
    whole = chain.invoke(HELLO)
    pieces = list(chain.stream(HELLO))

    assert whole.text == "".join(each.text for each in pieces) == talk.model.whole(HELLO)
    assert isinstance(whole, AIMessage)
    assert whole.usage_metadata is not None
    assert whole.usage_metadata["output_tokens"] > 0


@requirement("http:langchain", "http:tool-rounds")
def test_langchain_runs_its_tools(talk: Talk, chain: ChatOpenAI) -> None:
    able = chain.bind_tools([TOOL])
    first = able.invoke(WORDS)
    assert isinstance(first, AIMessage)
    (call,) = first.tool_calls
    second = able.invoke(
        [HumanMessage(WORDS), first, ToolMessage("sunny", tool_call_id=str(call["id"]))]
    )

    assert call["name"] == "weather"
    assert second.text == talk.model.whole(WORDS)


@requirement("http:langchain", "http:responses")
def test_langchain_has_responses_as_well(talk: Talk) -> None:
    chain = ChatOpenAI(
        model_name="chat",
        openai_api_base=talk.url,
        openai_api_key=SecretStr("any"),
        use_responses_api=True,
    )

    assert chain.invoke(HELLO).text == talk.model.whole(HELLO)
    assert "".join(each.text for each in chain.stream(HELLO)) == talk.model.whole(HELLO)


@requirement("http:langchain", "http:client-errors")
def test_langchain_raises_in_the_middle_of_a_stream(chain: ChatOpenAI) -> None:
    with pytest.raises(openai.APIError, match="connection to the provider was lost"):
        list(chain.stream(CUT))


@requirement("http:curl")
def test_curl_has_a_stream_to_its_end_and_an_error_by_its_status(talk: Talk) -> None:
    url = f"{talk.url}/chat/completions"
    asked = json.dumps({"messages": user(HELLO), "model": "chat", "stream": True})
    streamed = run(["curl", "--silent", "--no-buffer", "--json", asked, url])
    refused = run(["curl", "--silent", "--write-out", "%{http_code}", "--json", "{", url])

    assert streamed.endswith("data: [DONE]\n\n")
    assert refused.endswith("}400")
    assert json.loads(refused.removesuffix("400"))["error"]["param"] == "body"
