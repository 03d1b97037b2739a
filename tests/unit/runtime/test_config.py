"""Holds the configuration to saying what is wrong, where, and what would be right."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from services.runtime.config import (
    CallSettings,
    Config,
    ConfigError,
    Folders,
    HopSettings,
    Names,
    load_config,
    pod_name,
)
from services.runtime.policies.bulkhead import BulkheadConfig
from services.runtime.topology import EDGES, HOPS


class SampleSettings(HopSettings):
    """Is a room's section."""

    names: Names = ()
    """Some names."""
    folders: Folders = ()
    """Some folders."""


def loaded(tmp_path: Path, text: str = "", **variables: str) -> Config:
    """Return the configuration of a file's text and of an environment."""
    file = tmp_path / "sixhop.toml"
    file.write_text(text, encoding="utf-8")
    return load_config(file, {f"SIXHOP_{name}": value for name, value in variables.items()})


def problem(tmp_path: Path, text: str = "", **variables: str) -> str:
    """Return why a configuration is refused."""
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, text, **variables)
    return str(caught.value)


def test_without_file_and_environment_there_are_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    config = load_config(environ={})

    assert config.source == ""
    assert config.address("gateway") == "127.0.0.1:7400"
    assert (config.deadline.share, config.deadline.default_deadline_s) == (0.6, 30.0)
    assert config.limits("model").first_content_timeout_s == 6.0


def test_a_file_in_the_working_directory_is_read_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sixhop.toml").write_text("[gateway]\nport = 9000\n", encoding="utf-8")

    config = load_config(environ={})

    assert (config.port("gateway"), config.source) == (9000, "sixhop.toml")


def test_the_environment_names_another_file(tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text("[tool]\nport = 9003\n", encoding="utf-8")

    config = load_config(environ={"SIXHOP_CONFIG": str(other)})

    assert (config.port("tool"), config.source) == (9003, str(other))


def test_the_environment_is_laid_over_the_file(tmp_path: Path) -> None:
    config = loaded(
        tmp_path,
        "[gateway]\nport = 9000\nhost = '0.0.0.0'\n[log]\nlevel = 'debug'\n",
        GATEWAY__PORT="9100",
        LOG__CALLS="none",
        CALLS__TOOL__STEP_TIMEOUT_S="2.5",
    )

    assert config.address("gateway") == "0.0.0.0:9100"
    assert (config.log.level, config.log.calls) == ("debug", "none")
    assert config.limits("tool").step_timeout_s == 2.5


def test_variables_of_others_are_not_ours(tmp_path: Path) -> None:
    file = tmp_path / "sixhop.toml"
    file.write_text("", encoding="utf-8")
    environ = {"PATH": "/bin", "OTHER__PORT": "1", "SIXHOP_CONFIG": "x", "SIXHOP_PLAIN_LOOP": "1"}

    assert load_config(file, environ).raw == {}


@pytest.mark.parametrize(
    ("text", "variables", "expected"),
    [
        ("names = ['a', 'b']\nfolders = ['/x']", {}, (("a", "b"), (Path("/x"),))),
        (
            "",
            {"TOOL__NAMES": '["a", "b"]', "TOOL__FOLDERS": "/x, /y"},
            (("a", "b"), (Path("/x"), Path("/y"))),
        ),
        ("", {"TOOL__NAMES": ""}, ((), ())),
    ],
)
def test_a_list_is_written_in_toml_as_json_or_with_commas(
    tmp_path: Path, text: str, variables: Mapping[str, str], expected: object
) -> None:
    section = loaded(tmp_path, f"[tool]\n{text}", **variables).section("tool", SampleSettings)

    assert (section.names, section.folders) == expected


def test_one_limit_of_a_dependency_leaves_its_other_defaults(tmp_path: Path) -> None:
    limits = loaded(tmp_path, "[calls.model]\nread_timeout_s = 4\n").limits("model")

    assert (limits.read_timeout_s, limits.step_timeout_s) == (4.0, 10.0)
    assert limits.first_content_timeout_s == 6.0


def test_the_share_of_the_deadline_section_counts_for_every_dependency(tmp_path: Path) -> None:
    config = loaded(tmp_path, "[deadline]\nshare = 0.5\n")

    assert {config.limits(name).share for name in ("routing", "tool", "llm")} == {0.5}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[gatway]\n", "[gatway] is not a section; did you mean gateway?"),
        (
            "[calls.modle]\n",
            "[calls] modle (SIXHOP_CALLS__MODLE) is not a setting; did you",
        ),
        (
            "[calls.model]\nstep_timeout = 1\n",
            "SIXHOP_CALLS__MODEL__STEP_TIMEOUT) is not a setting; did you mean step_timeout_s?",
        ),
        (
            "[log]\nzzz = 1\n",
            "[log] zzz (SIXHOP_LOG__ZZZ) is not a setting; known: level, calls",
        ),
        ("gateway = 5\n", "[gateway] must be a table"),
        ("[calls]\nmodel = 5\n", "[calls] model = 5 (SIXHOP_CALLS__MODEL): write a table"),
        ("calls = 5\n", "[calls] must be a table"),
        (
            "[deadline]\nshare = 0.61\n",
            "SIXHOP_DEADLINE__SHARE): write a number above 0",
        ),
        ("[deadline]\nshare = 0\n", "[deadline] share = 0 ("),
        ("[calls.tool]\nstep_timeout_s = 'soon'\n", '[calls.tool] step_timeout_s = "soon" ('),
        ("[calls.tool]\nstep_timeout_s = -1\n", "[calls.tool] step_timeout_s = -1 ("),
        ("[calls.tool]\nstep_timeout_s = nan\n", "[calls.tool] step_timeout_s = nan ("),
        ("[deadline]\nmax_deadline_s = inf\n", "[deadline] max_deadline_s = inf ("),
        (
            "[calls.tool]\nstep_timeout_s = true\n",
            "[calls.tool] step_timeout_s = true (SIXHOP_CALLS__TOOL__STEP_TIMEOUT_S): write a num",
        ),
        ("[calls.model]\nfirst_content_timeout_s = false\n", "first_content_timeout_s = false ("),
        ("[log]\nlevel = 'loud'\n", "): write one of debug, info, warning, error"),
        ("[gateway\n", "sixhop.toml cannot be read: "),
    ],
)
def test_a_wrong_file_is_refused_with_the_place_and_a_hint(
    tmp_path: Path, text: str, message: str
) -> None:
    assert message in problem(tmp_path, text)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"GATWAY__PORT": "1"}, "[gatway] is not a section; did you mean gateway?"),
        ({"__PORT": "1"}, "[] is not a section"),
        ({"LOG__LEVEL": "[1"}, "SIXHOP_LOG__LEVEL looks like JSON and is none"),
        ({"LOG__LEVEL__X": "1"}, "SIXHOP_LOG__LEVEL__X: level is a value, not a table"),
        ({"CALLS__TOOL__STEP_TIMEOUT_S": "1s"}, '[calls.tool] step_timeout_s = "1s" ('),
    ],
)
def test_a_wrong_variable_is_refused_with_the_place_and_a_hint(
    tmp_path: Path, variables: Mapping[str, str], message: str
) -> None:
    assert message in problem(tmp_path, "[log]\nlevel = 'info'\n", **variables)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[tool]\nport = 70000\n",
            "[tool] port = 70000 (SIXHOP_TOOL__PORT): write a whole",
        ),
        (
            "[tool]\nprot = 1\n",
            "[tool] prot (SIXHOP_TOOL__PROT) is not a setting; did you",
        ),
        ("[tool]\nport = true\n", "[tool] port = true (SIXHOP_TOOL__PORT): write a whole"),
        ("[tool]\nnames = [1]\n", "[tool] names has 1 (SIXHOP_TOOL__NAMES): "),
    ],
)
def test_a_rooms_own_section_is_checked_by_the_room(
    tmp_path: Path, text: str, message: str
) -> None:
    config = loaded(tmp_path, text)

    with pytest.raises(ConfigError) as caught:
        config.section("tool", SampleSettings)

    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[bulkhead]\nmod = 'off'\n",
            "[bulkhead] mod (SIXHOP_BULKHEAD__MOD) is not a",
        ),
        (
            "[bulkhead.core]\npermit = 1\n",
            "SIXHOP_BULKHEAD__CORE__PERMIT) is not a setting; did you mean permits?",
        ),
        ("[bulkhead]\ncore = 5\n", "[bulkhead.core] must be a table"),
        ("bulkhead = 5\n", "[bulkhead] must be a table"),
        (
            "[bulkhead.core]\npermits = 'many'\n",
            '[bulkhead.core] permits = "many" (',
        ),
        (
            "[bulkhead.core]\npermits = true\n",
            "[bulkhead.core] permits = true (SIXHOP_BULKHEAD__CORE__PERMITS): write a whole",
        ),
        ("[bulkhead]\nmax_wait_s = true\n", "[bulkhead] max_wait_s = true ("),
        (
            "[bulkhead.core]\npermits = 0\n",
            "(SIXHOP_BULKHEAD__CORE__PERMITS): write a whole",
        ),
    ],
)
def test_a_wrong_key_of_a_policy_is_refused_at_any_depth(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, text).policy("bulkhead", BulkheadConfig)

    assert message in str(caught.value)


def test_one_size_of_a_group_leaves_its_other_defaults(tmp_path: Path) -> None:
    config = loaded(tmp_path, "[bulkhead.core]\npermits = 7\n", BULKHEAD__DATA__MAX_QUEUED="3")

    policy = config.policy("bulkhead", BulkheadConfig)

    assert (policy.core.permits, policy.core.max_queued) == (7, 256)
    assert (policy.data.permits, policy.data.max_queued) == (32, 3)


def test_other_hops_need_not_know_a_rooms_own_settings(tmp_path: Path) -> None:
    config = loaded(tmp_path, "[tool]\nport = 9003\nnames = ['a']\n")

    assert config.hop("tool") == HopSettings(port=9003)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml does not exist"):
        load_config(tmp_path / "none.toml", {})


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config(tmp_path, {})


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "sixhop.toml"
    file.write_bytes(b"\xff\xfe\x00")

    with pytest.raises(ConfigError, match="cannot be read"):
        load_config(file, {})


def test_settings_do_not_change() -> None:
    with pytest.raises(ValueError, match="frozen"):
        CallSettings().step_timeout_s = 1.0  # type: ignore[misc]


def test_a_process_is_called_as_its_pod_or_by_hop_and_number() -> None:
    assert pod_name("tool", {"POD_NAME": "tool-abc"}) == "tool-abc"
    assert pod_name("tool", {}).startswith("tool-")


def test_without_a_key_there_is_no_operator_key(tmp_path: Path) -> None:
    assert loaded(tmp_path).operator.secret() == ""


def test_the_operator_key_comes_from_the_environment_or_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("from-file\n", encoding="utf-8")

    by_file = loaded(tmp_path, OPERATOR__KEY_FILE=str(file))
    by_both = loaded(tmp_path, OPERATOR__KEY_FILE=str(file), OPERATOR__KEY=" from-environment ")

    assert by_file.operator.secret() == "from-file"
    assert by_both.operator.secret() == "from-environment"


@pytest.mark.parametrize("key", ["two words", "schlüssel", "tab\tkey"])
def test_a_key_that_cannot_travel_in_metadata_is_refused_and_not_shown(
    tmp_path: Path, key: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, OPERATOR__KEY=key).operator.secret()

    assert "[operator] key = … (SIXHOP_OPERATOR__KEY): " in str(caught.value)
    assert key not in str(caught.value)


@pytest.mark.parametrize("content", [None, b" \n", b"\xff\xfe"], ids=["none", "empty", "no text"])
def test_a_key_file_without_a_key_is_refused(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "key"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(ConfigError, match=r"\[operator\] key_file = .*SIXHOP_OPERATOR__KEY_FILE"):
        loaded(tmp_path, OPERATOR__KEY_FILE=str(file)).operator.secret()


def test_keys_are_shown_neither_by_a_configuration_nor_by_what_is_wrong_with_them(
    tmp_path: Path,
) -> None:
    config = loaded(tmp_path, '[operator]\nkey = "sesame-42"\n')
    wrong = problem(tmp_path, "[operator]\nkey = 4711\n")

    assert "sesame-42" not in repr(config.operator)
    assert wrong.startswith("[operator] key = … (SIXHOP_OPERATOR__KEY): ")
    assert "4711" not in wrong


def test_a_hop_without_replicas_is_one_process_at_its_address(tmp_path: Path) -> None:
    config = loaded(tmp_path, DOMAIN__PORT="9000")

    assert config.replicas("domain") == ("127.0.0.1:9000",)


def test_the_replicas_of_a_hop_come_from_a_list_or_from_text(tmp_path: Path) -> None:
    text = loaded(tmp_path, DOMAIN__REPLICAS="domain-0:7402, [::1]:7402")
    listed = loaded(tmp_path, '[domain]\nreplicas = ["a:1", "b:2"]\n')

    assert text.replicas("domain") == ("domain-0:7402", "[::1]:7402")
    assert listed.replicas("domain") == ("a:1", "b:2")


@pytest.mark.parametrize(
    ("wrong", "advice"),
    [
        ("domain", "host:port"),
        ("http://a:1", "host:port"),
        ("a:b", "host:port"),
        ("a:1,a:1", "name each process once"),
        ("a:0", "not between 1 and 65535"),
        ("a:1,b:65536", "the port of b:65536 is not between 1 and 65535"),
    ],
)
def test_a_replica_that_cannot_be_called_is_refused(
    tmp_path: Path, wrong: str, advice: str
) -> None:
    config = loaded(tmp_path, DOMAIN__REPLICAS=wrong)

    with pytest.raises(ConfigError, match=rf"\[domain\] replicas = .*{advice}"):
        config.replicas("domain")


def test_a_second_deployment_is_there_once_it_is_told_whom_to_ask(tmp_path: Path) -> None:
    without = loaded(tmp_path, MODEL_BACKUP__PORT="9005")
    config = loaded(tmp_path, MODEL_BACKUP__BASE_URL="http://small:8000/v1")

    assert without.processes == HOPS
    assert not any("model_backup" in (edge.caller, edge.callee) for edge in without.edges)
    assert config.processes == (*HOPS, "model_backup")
    assert config.edges == EDGES
    assert config.address("model_backup") == "127.0.0.1:7405"


def test_a_second_deployment_has_limits_of_its_own(tmp_path: Path) -> None:
    config = loaded(tmp_path, CALLS__MODEL_BACKUP__STEP_TIMEOUT_S="9")

    assert config.limits("model_backup").step_timeout_s == 9.0
    assert config.limits("model_backup").first_content_timeout_s == 6.0
    assert config.limits("model").step_timeout_s == 10.0
