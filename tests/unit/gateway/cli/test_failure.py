"""Tests whose fault a failure is, and what is advised."""

import pytest

from gateway.cli.failure import NO_ANSWER, NOT_RUNNING, Failure


@pytest.mark.parametrize(
    ("reason", "exit_code"),
    [
        ("INVALID_ARGUMENT", 2),
        ("NOT_FOUND", 2),
        ("UNAUTHENTICATED", 2),
        ("PERMISSION_DENIED", 2),
        (NOT_RUNNING, 2),
        (NO_ANSWER, 1),
        ("DEPENDENCY_FAILED", 1),
        ("BUDGET_TOO_SMALL", 1),
        ("SELF_BUG", 1),
        ("SOMETHING_NEW", 1),
    ],
)
def test_what_the_caller_can_repair_exits_with_two_and_the_rest_with_one(
    reason: str, exit_code: int
) -> None:
    failure = Failure(code="X", reason=reason, message="m")

    assert failure.exit_code == exit_code


def test_every_failed_run_comes_with_advice() -> None:
    assert Failure(code="X", reason="SOMETHING_NEW", message="m").advice
    assert "sixhop up" in Failure(code="X", reason=NOT_RUNNING, message="m").advice
    assert "--deadline" in Failure(code="X", reason="BUDGET_TOO_SMALL", message="m").advice


def test_the_origin_is_to_blame_and_its_reason_decides_the_advice() -> None:
    failure = Failure(
        code="ABORTED",
        reason="DEPENDENCY_FAILED",
        message="m",
        hop="gateway",
        origin_hop="llm",
        origin_reason="PROVIDER_KEY_REFUSED",
    )

    assert failure.failed_hop == "llm"
    assert "SIXHOP_MODEL__API_KEY" in failure.advice


def test_a_pause_that_the_hop_asked_for_is_what_is_advised() -> None:
    failure = Failure(code="X", reason="LOAD_SHED", message="m", retry_after_s=1.25)

    assert failure.advice == "ask again in 1.2 s"


def test_what_a_part_ended_by_its_own_limit_is_not_blamed_on_the_deadline() -> None:
    failure = Failure(
        code="ABORTED",
        reason="DEPENDENCY_FAILED",
        message="the tool 'x' did not answer within 0.50 s",
        cause="step_timeout",
        origin_hop="tool",
        origin_reason="SELF_TIMEOUT",
    )

    assert "no longer deadline" in failure.advice
    assert "--deadline" not in failure.advice
