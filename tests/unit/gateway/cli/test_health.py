"""Tests what people and programs are shown of a hop and of those that it calls."""

import io
from dataclasses import asdict, replace

import pytest
from rich.console import Console

from gateway.cli.dependencies import step_timeouts
from gateway.cli.health import uses_local_model
from gateway.cli.health_view import show
from gateway.cli.hop_health import HopHealth, heard, silent, to_document
from services.runtime.config import load_config
from services.runtime.durations import to_duration
from sixhop.runtime.v1 import runtime_pb2

HEALTHY = runtime_pb2.DependencySnapshot(
    key="tool/sql",
    breaker_state=runtime_pb2.BREAKER_STATE_CLOSED,
    breaker_reason="probe_succeeded",
    call_count=40,
    failure_ratio=0.05,
    mean_latency=to_duration(0.012),
    step_timeout_duration=to_duration(8.0),
    retry_count=2,
    retry_tokens=9.5,
)
SICK = runtime_pb2.DependencySnapshot(
    key="tool/pdf",
    breaker_state=runtime_pb2.BREAKER_STATE_OPEN,
    breaker_reason="slow_calls",
    breaker_state_duration=to_duration(12.5),
)
IDLE = runtime_pb2.DependencySnapshot(
    key="model", breaker_state=runtime_pb2.BREAKER_STATE_CLOSED, breaker_reason="new"
)


def told(*dependencies: runtime_pb2.DependencySnapshot, **settings: str) -> HopHealth:
    """Return how the domain hop does when it tells of these callees."""
    environ = {f"SIXHOP_{name}": value for name, value in settings.items()}
    snapshot = runtime_pb2.GetSnapshotResponse(
        hop="domain", pod="domain-1", ready=True, call_count=7, dependencies=dependencies
    )
    in_force = step_timeouts(load_config(None, environ))
    return heard("domain", "127.0.0.1:7003", snapshot, in_force, serves=True)


def shown_text(*hops: HopHealth, problem: str = "") -> list[str]:
    """Return the lines that people see."""
    console = Console(file=io.StringIO(), width=120, color_system=None, markup=False)
    show(console, hops, problem)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text.splitlines()


def shown(*hops: HopHealth) -> list[list[str]]:
    """Return the words of the lines that people see below those of the hops."""
    lines = [line.split() for line in shown_text(*hops)]
    return lines[lines.index([]) + 3 :] if [] in lines else []


def test_people_see_a_line_for_each_callee_that_has_had_calls() -> None:
    lines = shown(told(IDLE, HEALTHY))

    assert lines == [
        ["domain", "tool/sql", "closed", "40", "5%", "12", "ms", "8.00", "s", "2", "9.5"],
    ]


def test_people_see_every_breaker_that_is_not_closed_and_why() -> None:
    lines = shown(told(SICK), told(SICK))

    line = ["domain", "tool/pdf", "open", "slow_calls", "12.50", "s", "0", "20.00", "s"]
    assert lines == [line] * 2


def test_nothing_is_shown_of_callees_that_have_nothing_to_tell() -> None:
    assert shown(told(IDLE)) == []


def test_programs_are_told_of_every_callee() -> None:
    document = asdict(told(HEALTHY, IDLE))

    assert [each["key"] for each in document["dependencies"]] == ["tool/sql", "model"]
    assert document["dependencies"][0] == {
        "key": "tool/sql",
        "breaker_state": "closed",
        "breaker_reason": "probe_succeeded",
        "call_count": 40,
        "failure_ratio": 0.05,
        "mean_s": 0.012,
        "step_timeout_s": 8.0,
        "retry_count": 2,
        "retry_tokens": 9.5,
        "breaker_state_s": 0.0,
    }


def test_the_declared_timeout_is_in_force_until_latencies_ask_for_another() -> None:
    declared = told(SICK, CALLS__TOOL__STEP_TIMEOUT_S="7")
    switched_off = told(HEALTHY, ADAPTIVE__ENABLED="false")

    assert declared.dependencies[0].step_timeout_s == 7.0
    assert switched_off.dependencies[0].step_timeout_s == 20.0


def test_what_latencies_ask_for_is_shown_between_its_bounds() -> None:
    above = told(HEALTHY, CALLS__TOOL__STEP_TIMEOUT_S="1")
    below = told(HEALTHY, ADAPTIVE__MIN_TIMEOUT_S="9")

    assert above.dependencies[0].step_timeout_s == 1.0
    assert below.dependencies[0].step_timeout_s == 9.0


def test_a_callee_with_a_minimum_of_its_own_is_shown_with_it() -> None:
    seen = runtime_pb2.AdaptiveTimeoutSnapshot(min_timeout_duration=to_duration(2.0))
    quick = runtime_pb2.DependencySnapshot(
        key="tool/sql", step_timeout_duration=to_duration(0.1), adaptive_timeout=seen
    )

    assert told(quick).dependencies[0].step_timeout_s == 2.0


@pytest.mark.parametrize(("declared_s", "shown_s"), [(3.0, 3.0), (10.0, 8.0)])
def test_a_callee_that_gives_up_sooner_than_its_callers_is_shown_with_its_own_timeout(
    declared_s: float, shown_s: float
) -> None:
    own = runtime_pb2.DependencySnapshot()
    own.CopyFrom(HEALTHY)
    own.declared_timeout_duration.CopyFrom(to_duration(declared_s))

    assert told(own).dependencies[0].step_timeout_s == shown_s


def test_what_a_later_release_tells_is_shown_as_unknown_and_without_control_characters() -> None:
    later = runtime_pb2.DependencySnapshot(key="vec\x1b[31mtor")

    hop = told(later)

    assert hop.dependencies[0].breaker_state == "unknown"
    assert hop.dependencies[0].step_timeout_s is None
    assert shown(hop) == [["domain", "vec[31mtor", "unknown", "0"]]


def test_people_see_what_a_hop_could_still_take() -> None:
    full = runtime_pb2.GetSnapshotResponse(
        hop="tool",
        pod="tool-1",
        engine_enabled=True,
        queued_count=3,
        estimated_qps=12.4,
        max_last_latency=to_duration(0.5),
        p50_work_latency=to_duration(0.01),
        admission=runtime_pb2.AdmissionSnapshot(
            limit=20,
            limit_kind="gradient",
            inflight_count=4,
            rules=[runtime_pb2.RuleSnapshot(rule="limit", rejected_counts={"CRITICAL": 2})],
        ),
    )
    in_force = step_timeouts(load_config(None, {}))
    hop = heard("tool", "127.0.0.1:7403", full, in_force, serves=True)

    lines = shown(hop)

    assert [" ".join(line) for line in lines] == [
        "tool 20 gradient 4 3 12/s more 500 ms 10 ms 0 ms 2",
    ]


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        (runtime_pb2.RULE_MODE_ENFORCE, "tool 20 fixed 0 0"),
        (runtime_pb2.RULE_MODE_OBSERVE, "tool 20 fixed observed 0 0"),
        (runtime_pb2.RULE_MODE_OFF, "tool off 0 0"),
    ],
)
def test_a_limit_that_refuses_nobody_is_not_shown_as_one(
    mode: runtime_pb2.RuleMode.ValueType, words: str
) -> None:
    snapshot = runtime_pb2.GetSnapshotResponse(
        hop="tool",
        engine_enabled=True,
        admission=runtime_pb2.AdmissionSnapshot(
            limit=20,
            limit_kind="fixed",
            rules=[
                runtime_pb2.RuleSnapshot(rule="estimate", mode=runtime_pb2.RULE_MODE_OFF),
                runtime_pb2.RuleSnapshot(rule="limit", mode=mode),
            ],
        ),
    )
    in_force = step_timeouts(load_config(None, {}))

    (line,) = shown(heard("tool", "127.0.0.1:7403", snapshot, in_force, serves=True))

    assert " ".join(line).startswith(words)


def test_people_see_in_words_what_policies_do() -> None:
    ejected = runtime_pb2.EjectionSnapshot(ejected=True)
    snapshot = runtime_pb2.GetSnapshotResponse(hop="tool", ejection=ejected)
    in_force = step_timeouts(load_config(None, {}))
    hop = heard("tool", "127.0.0.1:7403", snapshot, in_force, serves=False)

    assert "tool     has taken itself out of service" in "\n".join(shown_text(hop))


def test_programs_are_shown_all_that_a_hop_has_told() -> None:
    document = to_document(told(HEALTHY))
    unheard = to_document(silent("tool", "127.0.0.1:7403"))

    assert document["snapshot"]["dependencies"][0]["retry_tokens"] == 9.5
    assert document["dependencies"][0]["key"] == "tool/sql"
    assert "told" not in document
    assert unheard["snapshot"] is None


def test_replicas_are_told_apart_by_their_addresses() -> None:
    first = replace(told(HEALTHY), replica=True)
    other = replace(silent("domain", "127.0.0.1:7502"), replica=True)

    text = "\n".join(shown_text(first, other))

    assert "domain@127.0.0.1:7003  serving" in text
    assert "domain@127.0.0.1:7502  silent" in text
    assert "domain   127.0.0.1:7502  no answer within" in text
    assert [to_document(hop)["hop"] for hop in (first, other)] == ["domain", "domain"]


def test_what_is_wrong_with_the_configuration_is_shown_before_the_hops() -> None:
    lines = shown_text(told(), problem="tool.port is wrong\nso is model.port")

    assert lines[:2] == ["problem: tool.port is wrong", "problem: so is model.port"]
    assert lines[2].split()[:2] == ["hop", "state"]


def model_hop(provider: str) -> HopHealth:
    """Return how a model hop does that calls this provider."""
    snapshot = runtime_pb2.GetSnapshotResponse(
        hop="model", ready=True, attributes={"provider": provider}
    )
    in_force = step_timeouts(load_config(None, {}))
    return heard("model", "127.0.0.1:7404", snapshot, in_force, serves=True)


@pytest.mark.parametrize("environ", [{}, {"SIXHOP_MODEL__BASE_URL": "https://api.example.com"}])
def test_the_model_hop_knows_best_whether_the_local_model_is_used(environ: dict[str, str]) -> None:
    config = load_config(None, environ)

    assert not uses_local_model(config, [model_hop("api.example.com")])
    assert uses_local_model(config, [model_hop("127.0.0.1:7410")])


def test_our_own_settings_tell_of_the_local_model_when_the_model_hop_is_silent() -> None:
    silent = HopHealth(hop="model", address="127.0.0.1:7404", state="silent")

    assert uses_local_model(load_config(None, {}), [silent])
    assert not uses_local_model(
        load_config(None, {"SIXHOP_MODEL__BASE_URL": "https://api.example.com"}), [silent]
    )
