"""Holds failing over to one whole text of one model, or the first one's error."""

import pytest

from services.runtime.call import Fallback
from services.runtime.circuit import BreakerState
from services.runtime.conversation import Message
from services.runtime.errors import (
    BulkheadFullError,
    CircuitOpenError,
    DeadlineMissingError,
    InvalidArgumentError,
    SelfBugError,
    SixhopError,
)
from services.runtime.failover_stream import CUT
from services.runtime.generation import ModelCard, Usage
from services.runtime.policies.fallback import BackupConfig, FallbackConfig
from tests.requirements import requirement
from tests.unit.runtime.fake_time import LoopClock
from tests.unit.runtime.interruption import How, Waits, everywhere
from tests.unit.runtime.two_models import (
    CARD,
    QUESTION,
    Pause,
    Takes,
    breaker,
    failed,
    having,
    pair,
)

PREFILLING = ModelCard(name="small", window_tokens=8192, max_output_tokens=512, prefill=True)


async def test_a_model_that_writes_is_not_replaced() -> None:
    both = pair(["a big ", "answer"])

    result = await both.write()

    assert both.story == ["first", "a big ", "answer"]
    assert (result.text, result.model, result.switch) == ("a big answer", "big", None)
    assert both.second.asked == []


@requirement("failover:before-content")
@pytest.mark.parametrize(
    "error",
    [
        failed(),
        failed("PROVIDER_ERROR", hop="llm"),
        failed("PROVIDER_KEY_REFUSED", hop="llm"),
        failed("TRUNCATED"),
        CircuitOpenError("model is known to be sick"),
        BulkheadFullError("no permit for model"),
    ],
    ids=lambda error: f"{error.reason}-{error.origin.reason if error.origin else ''}",
)
async def test_a_model_that_fails_before_its_first_text_is_replaced_unseen(
    error: SixhopError,
) -> None:
    both = pair([error])

    result = await both.write()

    assert both.story == ["first", "switch", "a small ", "answer"]
    assert (result.text, result.model, result.usage) == ("a small answer", "small", Usage(10, 14))
    (switch,) = both.switches
    assert result.switch is switch
    assert (switch.model, switch.error_reason, switch.problem) == (
        "small",
        error.reason,
        error.message,
    )
    assert not switch.voided
    assert not switch.continued
    assert both.fallback.snapshot().callees == {"model": {Fallback.BACKUP: 1}}
    assert (len(both.first.asked), len(both.second.asked)) == (1, 1)


@requirement("failover:original-error")
@pytest.mark.parametrize(
    "error",
    [
        InvalidArgumentError("messages", "send some"),
        DeadlineMissingError("no deadline"),
        SelfBugError("a defect"),
        failed("CONTENT_FILTERED", hop="llm"),
        failed("QUOTA_EXCEEDED"),
        failed("CONTEXT_LENGTH", hop="llm"),
    ],
    ids=lambda error: f"{error.reason}-{error.origin.reason if error.origin else ''}",
)
async def test_what_another_model_does_not_cure_is_not_sent_to_it(error: SixhopError) -> None:
    both = pair([error])

    with pytest.raises(SixhopError) as caught:
        await both.write()

    assert caught.value is error
    assert both.second.asked == []


@requirement("failover:restarted")
async def test_a_model_that_fails_in_the_middle_is_replaced_by_a_whole_text() -> None:
    both = pair(["half an ", failed("CONNECTION_LOST")])

    result = await both.write()

    assert both.story == ["first", "half an ", "switch", "a small ", "answer"]
    assert both.switches[0].voided
    assert result.text == "a small answer"
    assert both.second.asked == [QUESTION]


@requirement("failover:live")
async def test_live_text_is_gone_on_from_where_the_second_model_can() -> None:
    both = pair(["half an ", failed("CONNECTION_LOST")], ["answer"])
    both.backup.card = PREFILLING

    result = await both.write(live=True)

    assert both.story == ["first", "half an ", "switch", "answer"]
    assert (both.switches[0].continued, both.switches[0].voided) == (True, False)
    assert result.text == "half an answer"
    assert both.second.asked == [[*QUESTION, Message("assistant", "half an ")]]
    assert both.second.continued == [True]


@requirement("failover:live")
@pytest.mark.parametrize("knows", [True, False])
async def test_live_text_that_nobody_can_go_on_from_ends_in_an_error(knows: bool) -> None:
    both = pair(["half an ", failed("CONNECTION_LOST", hop="llm")])
    both.backup.card = CARD if knows else None

    with pytest.raises(SixhopError) as caught:
        await both.write(live=True)

    assert both.story == ["first", "half an "]
    assert (caught.value.cause, caught.value.reason) == (CUT, "DEPENDENCY_FAILED")
    assert caught.value.origin is not None
    assert (caught.value.origin.hop, caught.value.origin.reason) == ("llm", "CONNECTION_LOST")
    assert both.second.asked == []


async def test_live_text_that_has_not_begun_may_be_the_second_models() -> None:
    both = pair([failed()])

    result = await both.write(live=True)

    assert result.text == "a small answer"
    assert both.second.continued == [False]


@requirement("failover:fits-the-time")
@pytest.mark.parametrize(("has_s", "asked"), [(6.3, 1), (6.2, 0)])
async def test_a_second_model_that_would_come_too_late_is_not_asked(
    has_s: float, asked: int
) -> None:
    both = pair([Takes(6.0), failed()])

    if asked:
        await both.write(has_s=has_s)
    else:
        with pytest.raises(SixhopError, match="NO_ANSWER"):
            await both.write(has_s=has_s)

    assert len(both.second.asked) == asked


@requirement("failover:fits-the-time")
async def test_what_is_needed_afterwards_is_left() -> None:
    both = pair([failed()])

    with pytest.raises(SixhopError, match="NO_ANSWER"):
        await both.write(has_s=2.0, reserve_s=1.8)

    assert both.second.asked == []
    await both.write(has_s=2.0, reserve_s=1.7)


@requirement("failover:fits-the-time")
async def test_what_the_second_model_tells_of_its_first_word_counts_until_more_is_known() -> None:
    both = pair([failed()], [Takes(0.2), "a small answer"])
    both.backup.card = ModelCard(
        name="small", window_tokens=8192, max_output_tokens=512, first_token_s=3.0
    )
    rules = BackupConfig()

    assert both.backup.first_token_s(rules) == 3.0
    for _ in range(5):
        await both.write()

    assert both.backup.first_token_s(rules) == pytest.approx(0.2)


@requirement("failover:advice")
async def test_a_model_that_routing_knows_to_be_late_is_not_asked() -> None:
    both = pair(["a big answer"])

    result = await both.write(prefers_backup=True)

    assert (result.model, both.first.asked) == ("small", [])
    assert (both.switches[0].error_reason, both.switches[0].problem) == ("", "")


@requirement("failover:advice")
@pytest.mark.parametrize(
    ("state", "numbers", "model"),
    [
        (BreakerState.HALF_OPEN, {}, "big"),
        (BreakerState.OPEN, {}, "big"),
        (BreakerState.CLOSED, {}, "small"),
        (BreakerState.CLOSED, {"call_count": 3, "mean_latency_s": 1.0}, "big"),
        (BreakerState.CLOSED, {"call_count": 3, "mean_latency_s": 13.0}, "small"),
        (BreakerState.CLOSED, {"call_count": 3, "failure_ratio": 0.2}, "small"),
        (BreakerState.CLOSED, {"call_count": 3, "overdue": 1}, "small"),
    ],
)
async def test_a_breaker_that_knows_better_wins_over_advice(
    state: BreakerState, numbers: dict[str, float], model: str
) -> None:
    both = pair(["a big answer"], seen=breaker(state, **numbers))

    assert (await both.write(prefers_backup=True)).model == model


@requirement("failover:advice")
async def test_the_first_model_answers_when_the_advised_one_cannot() -> None:
    both = pair(["a big answer"], [failed("UNREACHABLE")])

    result = await both.write(prefers_backup=True)

    assert (result.model, both.story) == ("big", ["first", "a big answer"])
    assert both.switches == []


async def test_when_the_advised_model_fails_in_the_middle_its_error_is_told() -> None:
    error = failed("CONNECTION_LOST")
    both = pair(["a big answer"], ["a sm", error])

    with pytest.raises(SixhopError) as caught:
        await both.write(prefers_backup=True)

    assert caught.value is error
    assert both.first.asked == []


async def test_when_neither_can_after_an_advice_the_first_models_error_is_told() -> None:
    error = failed()
    both = pair([error], [failed("UNREACHABLE")])

    with pytest.raises(SixhopError) as caught:
        await both.write(prefers_backup=True)

    assert caught.value is error
    assert (len(both.first.asked), len(both.second.asked)) == (1, 1)


async def test_no_more_is_asked_of_the_second_model_than_it_writes() -> None:
    both = pair([failed()])
    both.backup.card = ModelCard(name="small", window_tokens=8192, max_output_tokens=64)

    await both.write()

    assert [options.max_output_tokens for options in both.second.options] == [64]


@pytest.mark.parametrize(
    "config",
    [FallbackConfig(enabled=False), FallbackConfig(mechanisms=frozenset({Fallback.CACHE}))],
)
async def test_where_no_model_may_stand_in_the_first_one_is_all(config: FallbackConfig) -> None:
    both = pair([failed()], config=config)

    with pytest.raises(SixhopError):
        await both.write()

    assert both.second.asked == []


async def test_a_whole_generation_is_rescued_in_the_middle() -> None:
    both = pair(["half", failed("CONNECTION_LOST")])

    with having(both.clock, 20.0):
        result = await both.failover.generate(QUESTION, max_output_tokens=50)

    assert (result.text, result.model) == ("a small answer", "small")
    assert result.switch is not None


@requirement("failover:nothing-left")
@pytest.mark.parametrize("first", [["one ", "two"], [failed()]])
async def test_whoever_leaves_in_the_middle_leaves_nothing_open(first: list[object]) -> None:
    both = pair(first, ["three ", "four"])  # type: ignore[arg-type]

    with having(both.clock, 20.0):
        async with both.failover.stream(QUESTION) as generation:
            async for _ in generation:
                assert both.open_count == 1
                break

    assert both.open_count == 0


@requirement("failover:nothing-left")
@pytest.mark.parametrize("how", How)
def test_a_cancel_at_any_wait_leaves_nothing_open(how: How) -> None:
    async def play(waits: Waits) -> None:
        both = pair(
            [Pause(), "half ", Pause(), failed("CONNECTION_LOST")],
            [Pause(), "a small ", Pause(), "answer", Pause()],
        )

        async def read() -> None:
            await both.write()
            await LoopClock().sleep(1.0)

        await waits.cancel(read())
        assert both.open_count == 0
        assert len(both.first.asked) <= 1
        assert len(both.second.asked) <= 1

    assert everywhere(play, how) >= 5
