"""Tests what is told of a hop that was asked to read its configuration again."""

import json
from pathlib import Path

import pytest

from gateway.cli.reloading import ANSWER_TIMEOUT_S, Outcome, Reloaded, reload_outcome, reload_text
from tests.unit.runtime.fake_time import START, LoopClock, in_no_time

TOOK = {"event": "config_reloaded", "changed": {"limit.max_inflight": "100 → 50"}}
REFUSED = {"event": "reload_refused", "problem": "tool.host: cannot change"}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return the log of a hop that has reloaded before."""
    file = tmp_path / "tool.log"
    file.write_text("".join(f"{json.dumps(event)}\n" for event in (TOOK, REFUSED)))
    return file


class WritingClock(LoopClock):
    """Has the hop write to its log when somebody waits."""

    def __init__(self, log: Path, *texts: str) -> None:
        """Take what the hop writes, one text for each look at its log."""
        self._log = log
        self._texts = list(texts)

    async def sleep(self, length_s: float) -> None:
        """Write, and wait."""
        if self._texts:
            with self._log.open("a") as file:
                file.write(self._texts.pop(0))
        await super().sleep(length_s)


def outcome(log: Path, *texts: str) -> Reloaded:
    """Return what is told of a hop that writes this after it was asked."""
    start, clock = log.stat().st_size, WritingClock(log, *texts)
    return in_no_time(reload_outcome("tool", 7, log, start, clock))


def test_a_hop_that_took_the_file_tells_what_has_changed(log: Path) -> None:
    line = json.dumps(TOOK)

    told = outcome(log, "noise\n", "[1]\n" + line[:20], line[20:] + "\n")

    assert told == Reloaded("tool", 7, Outcome.TOOK, changed={"limit.max_inflight": "100 → 50"})


def test_a_hop_that_refused_the_file_tells_why(log: Path) -> None:
    told = outcome(log, json.dumps(REFUSED) + "\n")

    assert told == Reloaded("tool", 7, Outcome.REFUSED, problem="tool.host: cannot change")


def test_a_hop_that_says_nothing_is_waited_for_so_long_and_no_longer(log: Path) -> None:
    size = log.stat().st_size

    async def scenario() -> tuple[Reloaded, float]:
        told = await reload_outcome("tool", 7, log, size, LoopClock())
        return told, LoopClock().now() - START

    told, waited_s = in_no_time(scenario())

    assert told == Reloaded("tool", 7, Outcome.NO_ANSWER)
    assert ANSWER_TIMEOUT_S <= waited_s < ANSWER_TIMEOUT_S + 1.0


@pytest.mark.parametrize(
    ("told", "text"),
    [
        (
            Reloaded("tool", 7, Outcome.TOOK, changed={"a.b": "1 → 2", "c.d": "x → y"}),
            "took the configuration: a.b 1 → 2, c.d x → y",
        ),
        (Reloaded("tool", 7, Outcome.TOOK), "took the configuration: nothing has changed"),
        (
            Reloaded("tool", 7, Outcome.REFUSED, problem="no\nfile"),
            "refused the configuration and goes on as before: no file",
        ),
        (
            Reloaded("tool", 7, Outcome.NO_ANSWER),
            "has not said within 7.00 s what it does; it is stopped, stuck or busy",
        ),
    ],
)
def test_people_are_told_in_words(told: Reloaded, text: str) -> None:
    assert reload_text(told) == text
