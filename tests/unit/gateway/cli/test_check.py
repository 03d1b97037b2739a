"""Tests what is found wrong in a configuration without asking the rooms."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from gateway.cli.check import CheckOptions, bearable, own_opinion, report
from gateway.cli.check_report import Report
from gateway.cli.observed import Proposal
from gateway.cli.rooms import Opinion
from services.runtime.checks.finding import Finding, Severity
from services.runtime.config import load_config


@pytest.mark.parametrize("name", ["TOOL", "LLM"])
def test_two_processes_on_one_port_are_found(name: str) -> None:
    _, opinion = own_opinion({f"SIXHOP_{name}__PORT": "7400"}, None)

    (finding,) = opinion.findings
    assert f"gateway and {name.lower()} are both to listen on 127.0.0.1:7400" in finding.text
    assert f"SIXHOP_{name}__PORT" in finding.text
    assert finding.severity is Severity.VIOLATION


@pytest.mark.parametrize("url", ["api.example.com/v1", "ftp://host/v1", "https://", "http://[x"])
def test_an_address_of_a_provider_that_is_none_is_found(url: str) -> None:
    _, opinion = own_opinion({"SIXHOP_MODEL__BASE_URL": url}, None)

    (finding,) = opinion.findings
    assert "model.base_url" in finding.text


def test_nothing_is_wrong_with_the_defaults_or_a_provider() -> None:
    assert own_opinion({}, None)[1] == Opinion()
    # The port of a local model that does not run is nobody's.
    environ = {"SIXHOP_MODEL__BASE_URL": "https://api.example.com/v1", "SIXHOP_LLM__PORT": "7400"}
    assert own_opinion(environ, None)[1] == Opinion()


def test_a_file_that_cannot_be_read_gives_no_configuration(tmp_path: Path) -> None:
    config, opinion = own_opinion({}, tmp_path / "none.toml")

    assert config is None
    assert "does not exist" in opinion.unreadable[0]


def test_sections_that_cannot_be_read_are_told_together() -> None:
    environ = {"SIXHOP_RETRY__MAX_ATEMPTS": "3", "SIXHOP_GATEWAY__MAX_SOURCE_COUNT": "-1"}

    config, opinion = own_opinion(environ, None)

    assert config is not None
    assert [text.split(" ")[0] for text in opinion.unreadable] == [
        "[retry]",
        "[gateway]",
    ]


EMBEDDED = """\
kind: ConfigMap
metadata: {name: sixhop}
data:
  sixhop.toml: |
    [retry]
    max_KEY = 1
"""


async def reported(folder: Path, key: str, rooms: Opinion | None = None) -> Report:
    """Return the report on manifests with a configuration in them, and what the rooms say to it."""
    file = folder / "k8s.yaml"
    file.write_text(EMBEDDED.replace("KEY", key), encoding="utf-8")

    async def ask(environ: Mapping[str, str]) -> Opinion:
        assert load_config(environ=environ).raw.keys() == {"retry"}
        return rooms or Opinion()

    return await report({"SIXHOP_TOOL__PORT": "x"}, CheckOptions(manifests=file), ask)


async def test_a_configuration_in_manifests_is_read_as_a_pod_reads_it(tmp_path: Path) -> None:
    told = await reported(tmp_path, "attempts")

    assert told.config is not None
    assert told.config.source == f"{tmp_path / 'k8s.yaml'}:1 ConfigMap sixhop, sixhop.toml"
    assert told.opinion.unreadable == ()


async def test_a_wrong_key_of_a_configuration_in_manifests_is_told_with_its_place(
    tmp_path: Path,
) -> None:
    told = await reported(tmp_path, "atempts")

    (problem,) = told.opinion.unreadable
    assert problem.startswith(f"{tmp_path / 'k8s.yaml'}:1 ConfigMap sixhop, sixhop.toml: ")
    assert "did you mean max_attempts?" in problem


async def test_what_a_room_misses_on_this_machine_is_a_warning_about_another(
    tmp_path: Path,
) -> None:
    text = "[tool] tool_dirs: the folder /data does not exist"

    told = await reported(tmp_path, "attempts", Opinion((text,), (), (text,)))

    assert told.opinion.unreadable == ()
    assert [f.severity for f in told.opinion.findings if "/data" in f.text] == [Severity.WARNING]


async def test_what_a_room_refuses_in_manifests_is_wrong_on_every_machine(tmp_path: Path) -> None:
    text = "[tool] max_rows = 0 (SIXHOP_TOOL__MAX_ROWS): write a whole number of 1 or more"

    told = await reported(tmp_path, "attempts", Opinion((text,)))

    (problem,) = told.opinion.unreadable
    assert problem.endswith(f"sixhop.toml: {text}")


async def test_a_named_configuration_is_the_one_that_manifests_are_compared_with(
    tmp_path: Path,
) -> None:
    file, named = tmp_path / "k8s.yaml", tmp_path / "mine.toml"
    file.write_text(EMBEDDED.replace("KEY", "atempts"), encoding="utf-8")
    named.write_text("", encoding="utf-8")

    async def ask(environ: Mapping[str, str]) -> Opinion:
        return Opinion()

    told = await report({}, CheckOptions(manifests=file, config_path=named), ask)

    assert told.config is not None
    assert told.config.source == str(named)
    assert told.opinion.unreadable == ()


def test_an_operator_key_that_cannot_travel_is_found_and_not_shown() -> None:
    _, opinion = own_opinion({"SIXHOP_OPERATOR__KEY": "two words"}, None)

    (problem,) = opinion.unreadable
    assert problem.startswith("[operator] key")
    assert "two words" not in problem


@pytest.mark.parametrize(("refused", "proposed_s"), [(False, 11.0), (True, 20.0)])
async def test_a_proposal_that_a_room_could_not_bear_is_none(
    refused: bool, proposed_s: float
) -> None:
    proposal = Proposal(
        setting="calls.tool.step_timeout_s", declared_s=20.0, proposed_s=11.0, because="p99"
    )
    seen: list[str] = []

    async def ask(environ: Mapping[str, str]) -> Opinion:
        seen.append(environ["SIXHOP_CALLS__TOOL__STEP_TIMEOUT_S"])
        finding = Finding(rule="r", severity=Severity.VIOLATION, text="a tool declares 15 s")
        return Opinion((), (finding,) if refused else ())

    told = await bearable(proposal, Report(config=None, opinion=Opinion()), {}, ask)

    assert seen == ["11"]
    assert told.proposed_s == proposed_s
    assert ("a tool declares 15 s" in told.because) == refused
