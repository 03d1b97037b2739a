"""Holds a caller's tools and options to reaching the agent as they were sent."""

import pytest

from services.domain.agent import Answer
from services.domain.run import Run
from services.runtime.client import open_channel
from services.runtime.conversation import Message, ToolCall, ToolOffer
from services.runtime.generation_options import GenerationOptions, ResponseFormat
from sixhop.gateway.v1 import gateway_pb2
from sixhop.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from sixhop.routing.v1 import routing_pb2
from sixhop.routing.v1.routing_pb2_grpc import RoutingServiceStub
from sixhop.type.v1 import chat_pb2, generation_pb2, run_pb2
from tests.integration.runtime.suite import Suite, running
from tests.requirements import requirement

CALL = chat_pb2.ToolCall(id="a", name="look_up", arguments='{"parcel": 7}')
HISTORY = [
    chat_pb2.ChatMessage(role=chat_pb2.CHAT_ROLE_SYSTEM, content="Be kind."),
    chat_pb2.ChatMessage(role=chat_pb2.CHAT_ROLE_USER, content="七号包裹在哪里？"),
    chat_pb2.ChatMessage(role=chat_pb2.CHAT_ROLE_ASSISTANT, tool_calls=[CALL]),
    chat_pb2.ChatMessage(role=chat_pb2.CHAT_ROLE_TOOL, tool_call_id="a", content="In port."),
]


class Keeper:
    """Is an agent that keeps what it was asked."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.runs: list[Run] = []

    async def __call__(self, run: Run) -> Answer:
        """Keep a run, and end it."""
        self.runs.append(run)
        return Answer()


async def routed(suite: Suite, question: run_pb2.Question) -> run_pb2.RunRouted:
    """Ask, and return how the run was routed."""
    async with open_channel(suite.config.address("gateway")) as channel:
        request = gateway_pb2.RunRequest(question=question)
        call = GatewayServiceStub(channel).Run(request, timeout=10.0)
        events = [response.event async for response in call]
    (found,) = [event.routed for event in events if event.HasField("routed")]
    return found


@requirement("conversing:agent", "conversing:options", "conversing:tools")
async def test_tools_and_options_reach_the_agent_as_they_were_sent() -> None:
    form = generation_pb2.ResponseFormat(kind="json_schema", name="rows", schema="{}", strict=True)
    question = run_pb2.Question(
        text="Where is it?",
        tools=[chat_pb2.ToolOffer(name="look_up", description="Finds.", strict=True)],
        tool_choice="look_up",
        generation=generation_pb2.GenerationOptions(
            max_output_tokens=7,
            temperature=0.0,
            top_p=0.5,
            stop=["x"],
            seed=0,
            response_format=form,
            single_tool_call=True,
        ),
    )
    async with running() as suite:
        suite.agent = agent = Keeper()
        found = await routed(suite, question)

    assert (found.agent, found.reason) == ("chat", "conversation")
    (run,) = agent.runs
    assert run.options == GenerationOptions(
        max_output_tokens=7,
        temperature=0.0,
        top_p=0.5,
        stop=("x",),
        seed=0,
        response_format=ResponseFormat(kind="json_schema", name="rows", schema="{}", strict=True),
        tools=[ToolOffer("look_up", "Finds.", "", strict=True)],
        tool_choice="look_up",
        single_tool_call=True,
    )


@requirement("conversing:agent", "conversing:tools", "conversing:system")
async def test_a_result_in_place_of_a_question_is_for_who_converses_in_the_users_language() -> None:
    async with running() as suite:
        suite.agent = agent = Keeper()
        found = await routed(suite, run_pb2.Question(history=HISTORY))

    assert found.reason == "conversation"
    (run,) = agent.runs
    assert (run.question, run.language, run.options) == ("", "zh", None)
    assert run.history == (
        Message("system", "Be kind."),
        Message("user", "七号包裹在哪里？"),
        Message("assistant", "", (ToolCall("a", "look_up", '{"parcel": 7}'),)),
        Message("tool", "In port.", tool_call_id="a"),
    )


@requirement("conversing:agent")
async def test_who_converses_is_listed() -> None:
    async with running() as suite, open_channel(suite.config.address("routing")) as channel:
        listed = await RoutingServiceStub(channel).ListAgents(
            routing_pb2.ListAgentsRequest(), timeout=10.0
        )

    assert [(agent.name, agent.converses) for agent in listed.agents] == [("chat", True)]


@requirement("conversing:agent")
@pytest.mark.parametrize(
    ("question", "reason"),
    [
        (run_pb2.Question(text="And now?", history=HISTORY), "conversation"),
        (run_pb2.Question(text="Hello", tool_choice="none"), "nearest"),
        (
            run_pb2.Question(
                text="Hello", generation=generation_pb2.GenerationOptions(temperature=0.5)
            ),
            "nearest",
        ),
        (run_pb2.Question(text="Hello", history=HISTORY[:2]), "nearest"),
    ],
    ids=["results", "no choice", "numbers", "rules"],
)
async def test_words_are_weighed_but_where_tools_have_answered(
    question: run_pb2.Question, reason: str
) -> None:
    async with running() as suite:
        suite.agent = Keeper()
        found = await routed(suite, question)

    assert found.reason == reason
