"""Tests what follows from what hops have measured."""

import io
from collections.abc import Mapping
from pathlib import Path

import pytest

from gateway.cli.console import open_console
from gateway.cli.hop_health import SERVING, UNREACHABLE, HopHealth
from gateway.cli.observed import FEW, FITTING, HUNG, LOOSE, TIGHT, Observed, compare, judge
from gateway.cli.observed_view import observed_document, show_observed
from services.runtime.config import Config, load_config
from services.runtime.durations import to_duration
from sixhop.runtime.v1 import runtime_pb2

Measured = tuple[int, float]
"""How many calls, and their p99 in seconds."""


def configured(**variables: str) -> Config:
    """Return a configuration with the engine on and these settings."""
    environ = {"SIXHOP_ENGINE__ENABLED": "true"}
    environ |= {f"SIXHOP_{name}": value for name, value in variables.items()}
    return load_config(Path("/dev/null"), environ)


def told(
    hop: str,
    callees: Mapping[str, Measured],
    least_s: float = 0.2,
    *,
    p50_ratio: float = 0.5,
    declared_s: float | None = None,
) -> HopHealth:
    """Return a hop that has told what it has measured.

    Args:
        hop: the hop.
        callees: what it has measured of each.
        least_s: what their timeouts do not go below.
        p50_ratio: the part of the p99 that the p50 is.
        declared_s: what they declare for themselves; None when nobody tells.
    """
    dependencies = [
        runtime_pb2.DependencySnapshot(
            key=key,
            declared_timeout_duration=None if declared_s is None else to_duration(declared_s),
            adaptive_timeout=runtime_pb2.AdaptiveTimeoutSnapshot(
                sample_count=count,
                p50_latency=to_duration(p50_ratio * p99_s),
                p99_latency=to_duration(p99_s),
                min_timeout_duration=to_duration(least_s),
            ),
        )
        for key, (count, p99_s) in callees.items()
    ]
    snapshot = runtime_pb2.GetSnapshotResponse(hop=hop, dependencies=dependencies)
    return HopHealth(hop=hop, address="x", state=SERVING, told=snapshot)


def proposed(observed: Observed) -> dict[str, float]:
    """Return what is to be changed."""
    return {each.setting: each.proposed_s for each in observed.proposals if each.changes}


@pytest.mark.parametrize(
    ("key", "measured", "verdict", "change"),
    [
        ("routing", (99, 4.0), FEW, {}),
        ("routing", (100, 4.0), TIGHT, {"calls.routing.step_timeout_s": 6.0}),
        ("routing", (100, 3.0), FITTING, {}),
        ("routing", (100, 1.0), LOOSE, {"calls.routing.step_timeout_s": 1.5}),
        # A wait for permits of 0.3 s must fit as well.
        ("routing", (100, 0.01234), LOOSE, {"calls.routing.step_timeout_s": 0.68}),
        # Three heartbeats of an agent that thinks.
        ("domain", (100, 0.5), LOOSE, {"calls.domain.step_timeout_s": 3.3}),
        # The model's own limits must fit into the tool's.
        ("tool/sql", (200, 3.0), LOOSE, {"calls.tool.step_timeout_s": 11.0}),
        ("tool/sql", (200, 16.0), TIGHT, {"calls.tool.step_timeout_s": 24.0}),
        # A longer silence would leave the backup too little.
        ("model", (200, 5.0), TIGHT, {}),
        ("model", (200, 1.7), LOOSE, {}),
    ],
)
def test_a_timeout_is_proposed_by_half_as_much_again_as_the_p99_where_it_can_hold(
    key: str, measured: Measured, verdict: str, change: dict[str, float]
) -> None:
    config = configured()

    observed = compare([told("domain", {key: measured})], config)

    assert [judge(each) for each in observed.observations] == [verdict]
    assert proposed(observed) == pytest.approx(change)


def test_the_slowest_callee_of_a_dependency_decides() -> None:
    hops = [told("domain", {"tool/sql": (150, 1.0), "tool/pdf": (150, 16.0), "tool/x": (9, 30.0)})]

    observed = compare(hops, configured())

    (proposal,) = observed.proposals
    assert proposal.proposed_s == 24.0
    assert proposal.because == "p99 16 s of 150 calls to tool/pdf"


def test_what_keeps_a_timeout_from_what_it_should_be_is_told() -> None:
    (proposal,) = compare([told("tool", {"model": (200, 5.0)})], configured()).proposals

    assert not proposal.changes
    assert "7.5 s would not fit the other limits" in proposal.because


def test_no_timeout_is_proposed_below_the_minimum_of_its_callee() -> None:
    hops = [told("gateway", {"routing": (200, 0.1)}, least_s=2.0)]

    assert proposed(compare(hops, configured())) == {"calls.routing.step_timeout_s": 2.0}


@pytest.mark.parametrize(
    ("p99_s", "verdict", "change"),
    [
        (0.3, LOOSE, {"timeout_s of tool/sql": 2.0}),
        (4.0, FITTING, {}),
        (8.0, TIGHT, {"timeout_s of tool/sql": 12.0}),
        (9.9, TIGHT, {"timeout_s of tool/sql": 15.0}),
    ],
)
def test_a_tool_is_held_to_its_own_timeout_and_not_to_that_of_its_hop(
    p99_s: float, verdict: str, change: dict[str, float]
) -> None:
    hops = [told("domain", {"tool/sql": (200, p99_s)}, least_s=2.0, declared_s=10.0)]

    observed = compare(hops, configured())

    assert [judge(each) for each in observed.observations] == [verdict]
    assert [each.declared_s for each in observed.observations] == [10.0]
    assert proposed(observed) == pytest.approx(change)


def test_no_tool_is_to_take_longer_than_its_callers_wait() -> None:
    hops = [told("domain", {"tool/sql": (200, 9.0)}, declared_s=10.0)]
    config = configured(CALLS__TOOL__STEP_TIMEOUT_S="12")

    (proposal,) = compare(hops, config).proposals

    assert proposal.proposed_s == 11.0
    assert proposal.because.endswith("; calls.tool.step_timeout_s 12 s leaves no more")


@pytest.mark.parametrize("declared_s", [10.0, None])
def test_a_callee_that_hangs_is_called_so_and_gets_no_longer_timeout(
    declared_s: float | None,
) -> None:
    took_s = declared_s or 20.0
    hops = [told("domain", {"tool/sql": (200, took_s)}, p50_ratio=1.0, declared_s=declared_s)]

    observed = compare(hops, configured())

    assert [judge(each) for each in observed.observations] == [HUNG]
    assert proposed(observed) == {}


def test_what_a_tool_should_declare_is_told_as_a_sentence_and_is_no_line_for_the_file() -> None:
    config = configured()
    observed = compare([told("domain", {"tool/sql": (200, 8.0)}, declared_s=10.0)], config)

    lines = [line.strip() for line in shown(observed, config).splitlines()]

    assert (
        "timeout_s of tool/sql, as its file declares it: 12 s instead of 10 s: "
        "p99 8 s of 200 calls to tool/sql"
    ) in lines


def test_callees_of_a_later_release_and_hops_that_say_nothing_are_left_out() -> None:
    silent = HopHealth(hop="tool", address="x", state=UNREACHABLE)
    known = told("domain", {"oracle": (200, 1.0)})

    observed = compare([silent, known], configured())

    assert not observed.answered
    assert observed.hops == (("tool", UNREACHABLE), ("domain", SERVING))


def shown(observed: Observed, config: Config) -> str:
    """Return what people see."""
    stream = io.StringIO()
    show_observed(open_console(stream), observed, config)
    return stream.getvalue()


def test_a_proposal_is_shown_as_a_line_for_the_file_and_holds_there(tmp_path: Path) -> None:
    config = configured()
    observed = compare([told("gateway", {"routing": (200, 4.0), "tool/x": (3, 1.0)})], config)

    text = shown(observed, config)

    assert "calls.routing.step_timeout_s = 6  # not 5: p99 4 s of 200 calls to routing" in text
    assert "with fewer than 100 calls a p99 is a guess" in text
    file = tmp_path / "sixhop.toml"
    lines = [line for line in text.splitlines() if line.startswith("calls.")]
    file.write_text("\n".join(lines), encoding="utf-8")
    assert load_config(file, {}).limits("routing").step_timeout_s == 6.0


def test_hops_that_measure_nothing_are_told_how_they_would() -> None:
    off = configured(ENGINE__ENABLED="false")

    assert "[engine] enabled = true" in shown(compare([told("domain", {})], off), off)
    assert "[engine]" not in shown(compare([told("domain", {})], configured()), configured())


def test_a_hop_that_does_not_answer_is_named() -> None:
    silent = HopHealth(hop="tool", address="x", state=UNREACHABLE)
    config = configured()

    text = shown(compare([silent, told("gateway", {"routing": (200, 3.0)})], config), config)

    assert "not measured: tool (unreachable)" in text
    assert "no timeout to change" in text


def test_programs_get_the_numbers() -> None:
    config = configured()
    observed = compare([told("gateway", {"routing": (200, 4.0)})], config)

    document = observed_document(observed)

    assert document["hops"] == {"gateway": "serving"}
    assert document["callees"][0]["verdict"] == TIGHT
    assert document["callees"][0]["declared_s"] == 5.0
    assert document["proposals"][0]["proposed_s"] == 6.0
