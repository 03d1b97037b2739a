"""Tests what an answer becomes when one of its tools goes bad, in real processes."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import grpc
import pytest
import pytest_asyncio

from services.runtime.durations import to_seconds
from services.runtime.topology import DOMAIN, GATEWAY, TOOL
from sixhop.runtime.v1 import runtime_pb2
from sixhop.type.v1 import run_pb2
from tests.e2e.cli import COMMAND_TIMEOUT_S
from tests.e2e.client import POLL_S, Client, Ended, open_client
from tests.e2e.conftest import QUIET
from tests.e2e.moods import PROBLEM
from tests.e2e.suite import START_TIMEOUT_S, WAIT_S, Suite, running_suite, wait_until
from tests.processes import ROOT
from tests.requirements import requirement

ENGINE = {"SIXHOP_ENGINE__ENABLED": "true", "SIXHOP_RETRY__MAX_ATTEMPTS": "1"}
QUESTIONS = {"en": "Which category grew most last quarter?", "zh": "上个季度哪个品类增长最多？"}
TOLD = {
    "en": {
        "note": r"This answer is not fresh: it uses earlier results, up to \d+ s old\.",
        "numbers": r"Degraded: numbers by an earlier answer, \d+ s old, because ",
        "chart": r"Degraded: chart left out, because ",
    },
    "zh": {
        "note": r"此答案并非最新：它使用了之前的结果，最早的为\d+ 秒前。",
        "numbers": r"已降级：数据使用了之前的结果（\d+ 秒前），原因：sql ",
        "chart": r"已降级：缺少图表，原因：chart ",
    },
}
OPEN = runtime_pb2.BREAKER_STATE_OPEN


@pytest.fixture(scope="module")
def driven_suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """Return a suite with the engine on."""
    with running_suite(tmp_path_factory.mktemp("driven"), **ENGINE) as started:
        yield started


@pytest_asyncio.fixture
async def driven(driven_suite: Suite) -> AsyncIterator[Client]:
    """Return a client of the suite with the engine on, whose domain hop knows the tools."""
    driven_suite.heal()
    driven_suite.provider.behave("at-once")
    async with open_client(driven_suite) as opened:
        # Nothing is measured here: it is enough that the hops have found each other.
        await opened.answered("probe_stream", START_TIMEOUT_S)
        await opened.tools_known()
        yield opened


@pytest.fixture(scope="module")
def bereft_suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """Return a suite that has answered two questions, and whose tool hop has died since."""
    with running_suite(tmp_path_factory.mktemp("bereft"), **ENGINE, **QUIET) as started:
        started.provider.behave("at-once")
        wait_until(lambda: learned(started), WAIT_S, "the domain hop learns the tools")
        for question in QUESTIONS.values():
            assert "Degraded: numbers" not in asked(started, question)
        started.child(TOOL).send(signal.SIGKILL)
        started.child(TOOL).wait(WAIT_S)
        yield started


@pytest_asyncio.fixture
async def bereft(bereft_suite: Suite) -> AsyncIterator[Client]:
    """Return a client of the suite without its tools."""
    async with open_client(bereft_suite) as opened:
        yield opened


class Mood:
    """Decides whether the tools of one test are sick."""

    def __init__(self, folder: Path) -> None:
        """Take the folder where they look."""
        self.folder = folder
        self._sick = folder / "sick"

    def fall_sick(self) -> None:
        """Let every execution fail."""
        self._sick.touch()

    def recover(self) -> None:
        """Let them answer again."""
        self._sick.unlink()


@pytest.fixture
def mood(tmp_path: Path) -> Mood:
    """Return the mood of the tools of this test: well, to begin with."""
    return Mood(tmp_path)


def learned(suite: Suite) -> bool:
    """Return whether the domain hop knows what the tools declare."""
    return any(line["event"] == "tools_learned" for line in suite.child(DOMAIN).events())


def asked(suite: Suite, question: str) -> str:
    """Return what `sixhop ask` shows a person."""
    environment = {"PYTHONPATH": f"{ROOT}:{ROOT / 'protos'}"}
    command = [sys.executable, "-m", "gateway.cli", "ask", question, "--agent", "reports"]
    done = subprocess.run(
        [*command, "--gateway", suite.address(GATEWAY)],
        cwd=suite.folder,
        env=os.environ | environment,
        capture_output=True,
        timeout=COMMAND_TIMEOUT_S,
        check=True,
    )
    return done.stdout.decode()


async def used(
    client: Client, tool: str, mood: Mood, agent: str = "probe_tool", *, number: int = 7
) -> Ended:
    """Return a run that uses one tool."""
    arguments = json.dumps({"folder": str(mood.folder), "number": number})
    return await client.run(f"{tool} {arguments}", agent=agent).end()


def finished(run: Ended) -> run_pb2.RunFinished:
    """Return the last event of a run that has ended well."""
    assert run.code is grpc.StatusCode.OK, run
    return run.events[-1].finished


def steps(run: Ended) -> list[tuple[str, "run_pb2.StepState.ValueType"]]:
    """Return how each step has ended."""
    ends = [each.step_finished for each in run.events if each.HasField("step_finished")]
    return [(end.name, end.state) for end in ends]


@requirement("fallback:earlier-answer")
async def test_a_sick_tool_gives_its_earlier_answer_and_says_how_old_it_is(
    driven: Client, mood: Mood
) -> None:
    fresh = await used(driven, "aging", mood)
    mood.fall_sick()

    old = await used(driven, "aging", mood)
    other = await used(driven, "aging", mood, number=8)
    arguments = json.dumps({"folder": str(mood.folder), "number": 7})
    unary = await driven.run(f"aging {arguments}", agent="probe_tool", unary=True).end()

    assert (fresh.text, finished(fresh).degraded) == ("{'number': 7.0}", False)
    assert (old.text, finished(old).degraded) == (fresh.text, True)
    [degraded] = old.degradations
    assert (degraded.mechanism, degraded.part) == ("cache", "aging")
    assert (degraded.reason, degraded.error_reason) == (PROBLEM, "DEPENDENCY_FAILED")
    assert 0 < to_seconds(degraded.age_duration) < old.ended - fresh.began
    assert steps(old) == [("aging", run_pb2.STEP_STATE_OK)]
    [told] = unary.degradations
    assert to_seconds(told.age_duration) > to_seconds(degraded.age_duration)
    # Another question has no earlier answer, and its error is the tool's own.
    assert (other.code, other.details["originReason"]) == (
        grpc.StatusCode.ABORTED,
        "SELF_UNAVAILABLE",
    )
    assert other.message == PROBLEM


@requirement("fallback:default")
async def test_a_sick_tool_gives_its_declared_default(driven: Client, mood: Mood) -> None:
    mood.fall_sick()

    run = await used(driven, "spare", mood)

    assert (run.text, finished(run).degraded) == ("{'number': -1.0}", True)
    [degraded] = run.degradations
    assert (degraded.mechanism, degraded.part) == ("default", "spare")
    assert not degraded.HasField("age_duration")


@requirement("fallback:left-out")
async def test_an_optional_step_of_a_sick_tool_is_left_out_and_the_answer_says_so(
    driven: Client, mood: Mood
) -> None:
    mood.fall_sick()

    run = await used(driven, "luxury", mood, "probe_plan")

    assert json.loads(run.text)["given"] is None
    assert list(finished(run).missing_parts) == ["luxury"]
    assert steps(run) == [("luxury", run_pb2.STEP_STATE_FAILED)]
    [degraded] = run.degradations
    assert (degraded.mechanism, degraded.reason) == ("skip", PROBLEM)


@requirement("fallback:original-error")
@pytest.mark.parametrize(
    ("tool", "agent"),
    # What must be reported is, although the agent could do without; what may be left out is not,
    # when the agent cannot.
    [("strict", "probe_plan"), ("strict", "probe_tool"), ("luxury", "probe_tool")],
)
async def test_what_nothing_can_replace_ends_with_the_error_of_the_tool(
    driven: Client, mood: Mood, tool: str, agent: str
) -> None:
    mood.fall_sick()

    run = await used(driven, tool, mood, agent)

    assert (run.code, run.reason) == (grpc.StatusCode.ABORTED, "DEPENDENCY_FAILED"), run
    assert (run.details["originHop"], run.details["originReason"]) == (TOOL, "SELF_UNAVAILABLE")
    assert run.message == PROBLEM


@requirement("fallback:open-breaker-is-not-offered")
async def test_a_tool_whose_breaker_is_open_is_left_out_before_anything_is_waited_for(
    driven: Client, mood: Mood
) -> None:
    well = json.loads((await used(driven, "frail", mood, "probe_plan")).text)
    short = await prompt_characters(driven)
    mood.fall_sick()

    async with asyncio.timeout(WAIT_S):
        while (await driven.dependency(DOMAIN, "tool/frail")).breaker_state != OPEN:
            await used(driven, "frail", mood)
            await asyncio.sleep(POLL_S)
    mood.recover()
    run = await used(driven, "frail", mood, "probe_plan")
    longer = await prompt_characters(driven)

    assert well["given"] == {"number": 7.0}
    assert {"frail", "sql"} <= set(well["offered"])
    offered = json.loads(run.text)["offered"]
    assert "sql" in offered
    assert "frail" not in offered
    assert steps(run) == [("frail", run_pb2.STEP_STATE_SKIPPED)]
    assert [each.error_reason for each in run.degradations] == ["CIRCUIT_OPEN"]
    assert list(finished(run).missing_parts) == ["frail"]
    # Nobody was asked: the only call of the run is the one to the agent.
    assert [report.hop for report in run.reports if report.hop == TOOL] == []
    note = "These tools cannot be used right now: frail. Promise nothing that needs them."
    assert longer - short == len(f" {note}")


async def prompt_characters(client: Client) -> int:
    """Return how long the prompt is of the agent that talks."""
    chat = await client.run("What can you do?", agent="chat").end()
    request = await client.suite.provider.asked(chat.run_id)
    return int(request["prompt_characters"])


@requirement("fallback:stale-report")
@pytest.mark.parametrize("language", ["en", "zh"])
async def test_a_report_without_its_tools_is_made_of_earlier_numbers_and_says_so(
    bereft: Client, language: str
) -> None:
    run = await bereft.run(QUESTIONS[language], agent="reports", deadline_s=30.0).end()
    shown = asked(bereft.suite, QUESTIONS[language])

    assert set(finished(run).missing_parts) == {"chart", "pdf"}
    assert {(each.mechanism, each.part) for each in run.degradations} == {
        ("cache", "columns"),
        ("cache", "numbers"),
        ("skip", "chart"),
        ("template", "prose"),
        ("skip", "pdf"),
    }
    told = TOLD[language]
    assert re.search(told["note"], run.text), run.text
    assert re.search(told["numbers"], shown), shown
    assert re.search(told["chart"], shown), shown


@requirement("fallback:search-is-missed")
async def test_research_that_cannot_search_says_so(bereft: Client) -> None:
    run = await bereft.run("How long is the warranty on a kettle?", agent="research").end()

    assert run.text.startswith("The documents cannot be searched right now")
    assert list(finished(run).missing_parts) == ["search"]
    assert [each.mechanism for each in run.degradations] == ["skip"]
