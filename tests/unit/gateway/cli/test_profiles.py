"""Tests which configuration a command line names, and that every profile can be read."""

from pathlib import Path

import pytest

from gateway.cli.profiles import known, named
from services.runtime.call import Mode
from services.runtime.config import load_config
from services.runtime.ladder import check_ladder
from services.runtime.policy_settings import policy_settings
from services.runtime.topology import DOMAIN, LLM, MODEL, ROUTING, TOOL


def test_a_profile_is_taken_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    path = named(Path("naive"))

    assert path is not None
    assert path.is_absolute()
    assert path.name == "naive.toml"


@pytest.mark.parametrize("text", ["naive.toml", "./naive", "dir/naive", "nothing"])
def test_everything_else_is_a_file(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "naive" if text == "./naive" else Path(text)

    assert named(path) == path
    assert named(None) is None


def test_a_file_that_is_called_like_a_profile_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("naive").write_text("", encoding="utf-8")

    assert named(Path("naive")) == Path("naive")


@pytest.mark.parametrize("name", known())
def test_every_profile_can_be_read_and_started_with(name: str) -> None:
    check_ladder(load_config(named(Path(name)), {}))


def test_the_naive_profile_has_no_control_left() -> None:
    config = load_config(named(Path("naive")), {})
    policies = policy_settings(config)
    steps = [config.limits(hop).step_timeout_s for hop in (ROUTING, DOMAIN, TOOL, MODEL, LLM)]

    assert config.static_deadlines
    assert [config.deadline.default_deadline_s, *steps] == [30.0, 25.0, 8.0, 12.0, 5.0, 30.0]
    assert (policies.retry.mode, policies.retry.max_attempts) == ("blind", 4)
    assert (policies.retry.initial_backoff_s, policies.hedge.keys) == (0.1, frozenset())
    assert policies.bulkhead.shared
    assert not policies.fallback.enabled
    assert not policies.adaptive.enabled
    admission = policies.admission
    switches = (admission.estimate, admission.limit, admission.fair_share, policies.breaker.mode)
    assert {*switches, policies.shed.mode, policies.self_ejection.mode} == {Mode.OFF}
