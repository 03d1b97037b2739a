"""Holds talks with a caller's own tools to whole rounds, through real processes and two providers.

The simulated providers call the tools that the user's last words name, with arguments that their
schemas allow, and answer in words once the results are there.
"""

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import grpc
import pytest
import pytest_asyncio

from services.runtime.topology import MODEL_BACKUP
from sixhop.type.v1 import chat_pb2, generation_pb2, run_pb2
from tests.e2e.client import Client, Ended, open_client
from tests.e2e.conftest import QUIET
from tests.e2e.simulators import Rescued, rescued
from tests.e2e.suite import WAIT_S, eventually
from tests.requirements import requirement

ABLE = {
    "SIXHOP_MODEL__TOOLS": "true",
    "SIXHOP_MODEL__JSON_SCHEMA": "true",
    "SIXHOP_MODEL_BACKUP__TOOLS": "true",
    # A domain hop that was up before the second model asks it again soon.
    "SIXHOP_FALLBACK__BACKUP__REFRESH_INTERVAL_S": "1",
}
SCHEMA = '{"type": "object", "properties": {"parcel": {"type": "integer"}}}'
LOOK_UP = chat_pb2.ToolOffer(name="look_up", description="Finds.", arguments_schema=SCHEMA)
SEND = chat_pb2.ToolOffer(name="send_mail", description="Writes.", arguments_schema="{}")
TOOLS = [LOOK_UP, SEND]
WORDS = "Where is parcel 7? Do look_up."
OK = grpc.StatusCode.OK
DEADLINE_S = 20.0


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rescued]:
    """Return a suite with two simulated providers that call tools; its breakers only look on."""
    with rescued(tmp_path_factory.mktemp("tools"), **QUIET, **ABLE) as started:
        yield started


@pytest_asyncio.fixture
async def client(where: Rescued) -> AsyncIterator[Client]:
    """Return a client, once the second model has told what it can."""
    await eventually(
        lambda: [
            line
            for line in where.suite.child(MODEL_BACKUP).events()
            if line["event"] == "call_ended" and line["method"] == "DescribeModel"
        ],
        WAIT_S,
        "the second model tells what it can",
    )
    async with open_client(where.suite) as opened:
        yield opened


async def talked(client: Client, words: str, **asked: Any) -> Ended:
    """Return how a talk ended."""
    options: dict[str, Any] = {"deadline_s": DEADLINE_S, "tools": TOOLS} | asked
    return await client.run(words, **options).end()


def user(words: str) -> chat_pb2.ChatMessage:
    """Return what the user said."""
    return chat_pb2.ChatMessage(role=chat_pb2.CHAT_ROLE_USER, content=words)


def round_of(words: str, run: Ended) -> list[chat_pb2.ChatMessage]:
    """Return the history after a run that asked for tools, with a result for each."""
    asked = chat_pb2.ChatMessage(
        role=chat_pb2.CHAT_ROLE_ASSISTANT, content=run.text, tool_calls=run.tool_calls
    )
    results = (
        chat_pb2.ChatMessage(role=chat_pb2.CHAT_ROLE_TOOL, tool_call_id=call.id, content="In port.")
        for call in run.tool_calls
    )
    return [user(words), asked, *results]


def called(run: Ended) -> list[tuple[str, Any]]:
    """Return which tools a model asks for, with their arguments."""
    return [(call.name, json.loads(call.arguments)) for call in run.tool_calls]


@requirement("conversing:tools", "conversing:agent")
@pytest.mark.parametrize("unary", [False, True])
async def test_a_talk_asks_for_a_tool_and_goes_on_from_its_result(
    where: Rescued, client: Client, unary: bool
) -> None:
    first = await talked(client, WORDS, unary=unary)
    second = await talked(client, "", history=round_of(WORDS, first), unary=unary)

    assert (first.code, called(first)) == (OK, [("look_up", {"parcel": 1})]), first
    assert (first.finished.agent, first.finished.finish_reason) == ("chat", "tool_calls")
    assert (second.code, second.text) == (OK, where.primary.whole(WORDS)), second
    assert (second.finished.finish_reason, second.tool_calls) == ("stop", [])
    for run in (first, second):
        assert not run.degradations
        if not unary:
            (routed,) = [event.routed for event in run.events if event.HasField("routed")]
            assert (routed.agent, routed.reason) == ("chat", "conversation")
    if not unary:
        assert first.kinds[-2:] == ["tool_call", "finished"]


@requirement("conversing:tools")
@pytest.mark.parametrize(
    ("choice", "names"),
    [
        ("auto", ["look_up"]),
        ("none", []),
        ("required", ["look_up"]),
        ("send_mail", ["send_mail"]),
    ],
)
async def test_the_caller_may_choose_the_tool(
    client: Client, choice: str, names: list[str]
) -> None:
    run = await talked(client, WORDS, tool_choice=choice)

    assert (run.code, [name for name, _ in called(run)]) == (OK, names), run
    assert run.finished.finish_reason == ("tool_calls" if names else "stop")


@requirement("conversing:tools")
async def test_a_model_may_ask_for_several_tools_at_a_time(where: Rescued, client: Client) -> None:
    words = "Do look_up and send_mail."

    first = await talked(client, words)
    second = await talked(client, "", history=round_of(words, first))

    assert [name for name, _ in called(first)] == ["look_up", "send_mail"]
    assert len({call.id for call in first.tool_calls}) == 2
    assert (second.code, second.text) == (OK, where.primary.whole(words)), second


@requirement("conversing:agent", "run:never-truncated")
async def test_a_message_that_is_too_long_for_a_question_is_answered_as_a_history(
    where: Rescued, client: Client
) -> None:
    words = "Parcel 4711 went to the harbour of Shenzhen. " * 400

    run = await talked(client, "", history=[user(words)], tools=())

    assert (run.code, run.text) == (OK, where.primary.whole(words)), run
    assert not run.degradations


@requirement("conversing:failover", "run:never-truncated")
@pytest.mark.parametrize(
    "delivery", [run_pb2.DELIVERY_RESTARTABLE, run_pb2.DELIVERY_BUFFERED, run_pb2.DELIVERY_LIVE]
)
@pytest.mark.parametrize("fault", ["reset?at_token=2", "bad-arguments&finish_reason=length"])
async def test_a_model_that_is_cut_in_a_tool_call_is_replaced_by_one_that_calls_tools(
    where: Rescued, client: Client, fault: str, delivery: "run_pb2.Delivery.ValueType"
) -> None:
    run = await talked(client, f"{WORDS} [sim: {fault}]", delivery=delivery)

    assert (run.code, called(run)) == (OK, [("look_up", {"parcel": 1})]), run
    assert [each.mechanism for each in run.degradations] == ["backup"]
    # Nobody had seen anything of the call that was cut.
    assert "restarted" not in run.kinds
    assert run.finished.model == where.backup.model
    assert len(where.backup.requests(run.run_id)) == 1


@requirement("conversing:failover", "conversing:deliveries", "run:never-truncated")
@pytest.mark.parametrize(
    ("delivery", "restart_count"),
    [(run_pb2.DELIVERY_RESTARTABLE, 1), (run_pb2.DELIVERY_BUFFERED, 0)],
)
async def test_after_the_results_a_text_that_is_cut_is_written_anew(
    where: Rescued,
    client: Client,
    delivery: "run_pb2.Delivery.ValueType",
    restart_count: int,
) -> None:
    first = await talked(client, WORDS)
    words = f"{WORDS} [sim: reset?at_token=4]"
    run = await talked(client, "", history=round_of(words, first), delivery=delivery)

    assert (run.code, run.text) == (OK, where.backup.whole(words)), run
    assert run.kinds.count("restarted") == restart_count
    assert run.tool_calls == []


@requirement("conversing:failover")
async def test_who_cannot_keep_to_a_schema_does_not_stand_in(
    where: Rescued, client: Client
) -> None:
    form = generation_pb2.ResponseFormat(kind="json_schema", name="where", schema=SCHEMA)
    generation = generation_pb2.GenerationOptions(response_format=form)

    well = await talked(client, "Where is it?", generation=generation, tools=())
    cut = await talked(
        client, "Where is it? [sim: reset?at_token=1]", generation=generation, tools=()
    )

    assert (well.code, json.loads(well.text)) == (OK, {"parcel": 1}), well
    assert cut.code is grpc.StatusCode.ABORTED, cut
    assert where.backup.requests(cut.run_id) == []


@requirement("conversing:options", "conversing:length")
async def test_a_stop_ends_the_text_and_a_limit_cuts_it_and_says_so(
    where: Rescued, client: Client
) -> None:
    whole = where.primary.whole("Tell me more.")
    word = whole.split()[4]
    stopped = generation_pb2.GenerationOptions(stop=[word], max_output_tokens=100)
    limited = generation_pb2.GenerationOptions(max_output_tokens=4)

    short = await talked(client, "Tell me more.", generation=stopped, tools=())
    cut = await talked(client, "Tell me more.", generation=limited, agent="chat", tools=())

    assert (short.text, short.finished.finish_reason) == (whole[: whole.index(word)], "stop")
    assert not short.finished.missing_parts
    assert cut.text
    assert whole.startswith(cut.text)
    assert cut.finished.usage.output_token_count == 4
    assert (cut.finished.finish_reason, list(cut.finished.missing_parts)) == (
        "length",
        ["the end of the answer"],
    )


@requirement("conversing:refused")
@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"generation": generation_pb2.GenerationOptions(seed=7)}, "seed"),
        (
            {
                "generation": generation_pb2.GenerationOptions(
                    response_format=generation_pb2.ResponseFormat(kind="json_object")
                )
            },
            "response_format",
        ),
        (
            {"generation": generation_pb2.GenerationOptions(single_tool_call=True)},
            "single_tool_call",
        ),
        ({"tools": [chat_pb2.ToolOffer(name="look_up", strict=True)]}, "tools"),
        ({"tool_choice": "search"}, "question.tool_choice"),
    ],
)
async def test_what_no_model_here_can_do_is_refused_by_field(
    where: Rescued, client: Client, asked: dict[str, Any], field: str
) -> None:
    run = await talked(client, WORDS, agent="chat", **asked)

    assert (run.code, run.details.get("field")) == (grpc.StatusCode.INVALID_ARGUMENT, field), run
    assert where.primary.requests(run.run_id) == []


@requirement("conversing:agent")
@pytest.mark.parametrize("agent", ["orders", "reports", "research"])
async def test_an_agent_that_does_not_converse_refuses_tools(client: Client, agent: str) -> None:
    run = await talked(client, WORDS, agent=agent)

    assert (run.code, run.details.get("field")) == (grpc.StatusCode.INVALID_ARGUMENT, "agent"), run
    assert agent in run.message
