"""Tests what hops find in the settings of their pods."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from gateway.cli.check import CheckOptions, report
from gateway.cli.check_report import Report
from gateway.cli.pod_check import UNKNOWN_SECRETS, PodHops
from gateway.cli.rooms import Opinion
from services.routing.config import BoardSettings
from services.runtime.checks.finding import Finding, Severity
from services.runtime.config import load_config
from services.runtime.sections import read_section
from services.runtime.setting_text import SECRET_ENDS
from tests.requirements import requirement
from tests.unit.gateway.manifests.breaking import SUITE, broken

Asked = list[tuple[str, dict[str, str]]]


async def told(
    folder: Path,
    text: str,
    opinion: Opinion,
    known: Opinion | None = None,
    named: Path | None = None,
) -> tuple[Report, Asked]:
    """Return the report on manifests, and which hops were asked with which variables of ours."""
    file = folder / "suite.yaml"
    file.write_text(text, encoding="utf-8")
    asked: Asked = []

    async def ask(environ: Mapping[str, str]) -> Opinion:
        return known or Opinion()

    async def ask_one(hop: str, environ: Mapping[str, str]) -> Opinion:
        ours = {name: value for name, value in environ.items() if name.startswith("SIXHOP_")}
        # Its file is there while it is asked.
        assert load_config(environ=ours).hop("routing").drain_timeout_s == 116
        asked.append((hop, ours))
        return opinion

    environ = {"SIXHOP_TOOL__PORT": "7999", "PATH": "/bin"}
    options = CheckOptions(manifests=file, config_path=named)
    return await report(environ, options, ask, ask_one), asked


@requirement("check:manifests")
async def test_a_hop_is_asked_with_what_its_pod_has_and_nothing_of_this_machine(
    tmp_path: Path,
) -> None:
    _, ((hop, ours),) = await told(tmp_path, SUITE, Opinion())

    assert hop == "routing"
    assert Path(ours.pop("SIXHOP_CONFIG")).name == "sixhop.toml"
    assert ours == {"SIXHOP_LOG__LEVEL": "warning", "SIXHOP_MODEL__API_KEY": "unknown"}


async def test_every_secret_is_something_that_its_hop_can_read(tmp_path: Path) -> None:
    # Whatever is never shown may come from a Secret.
    assert set(UNKNOWN_SECRETS) == set(SECRET_ENDS)
    text = broken("SIXHOP_MODEL__API_KEY", "SIXHOP_ROUTING__BOARD__REDIS_URL")

    _, ((_, ours),) = await told(tmp_path, text, Opinion())

    url = ours["SIXHOP_ROUTING__BOARD__REDIS_URL"]
    assert read_section("board", BoardSettings, {"redis_url": url}).redis_url.get_secret_value()


async def test_a_file_that_is_named_is_that_of_every_pod_and_has_nothing_of_this_machine(
    tmp_path: Path,
) -> None:
    named = tmp_path / "mine.toml"
    named.write_text("[routing]\ndrain_timeout_s = 116\n", encoding="utf-8")

    _, ((_, ours),) = await told(tmp_path, SUITE, Opinion(), named=named)

    assert ours.pop("SIXHOP_CONFIG") == str(named)
    assert "SIXHOP_TOOL__PORT" not in ours


@requirement("check:manifests")
async def test_what_a_hop_refuses_is_told_with_the_place_of_its_pod(tmp_path: Path) -> None:
    text = "[retry] max_attempts = 99 (SIXHOP_RETRY__MAX_ATTEMPTS): write a whole number"

    found, _ = await told(tmp_path, SUITE, Opinion((text,)))

    (finding,) = found.opinion.findings
    assert (finding.rule, finding.severity) == ("settings-readable", Severity.VIOLATION)
    assert finding.text.startswith(f"{tmp_path / 'suite.yaml'}:")
    assert finding.text.endswith(f" Deployment routing: {text}")
    assert found.manifests is not None
    assert finding in found.manifests.findings


async def test_what_a_hop_misses_on_this_machine_may_be_on_its_own(tmp_path: Path) -> None:
    text = "[tool] tool_dirs: the folder /tools does not exist"

    found, _ = await told(tmp_path, SUITE, Opinion((text,), (), (text,)))

    (finding,) = found.opinion.findings
    assert finding.severity is Severity.WARNING
    assert finding.text.endswith(f"Deployment routing, here: {text}")


async def test_what_a_pod_alone_contradicts_is_told_and_what_all_do_is_told_once(
    tmp_path: Path,
) -> None:
    shared = Finding(rule="step-fits", severity=Severity.VIOLATION, text="shared")
    own = Finding(rule="heartbeats", severity=Severity.VIOLATION, text="own")

    found, _ = await told(tmp_path, SUITE, Opinion((), (shared, own)), Opinion((), (shared,)))

    first, second = found.opinion.findings
    assert first == shared
    assert second.rule == "settings-accepted"
    assert second.text.endswith("Deployment routing: own")


async def test_a_pod_that_cannot_be_read_is_told_and_not_asked(tmp_path: Path) -> None:
    found, asked = await told(tmp_path, broken("value: warning", "value: loud"), Opinion())

    assert asked == []
    assert [finding.rule for finding in found.opinion.findings] == ["settings-readable"]


@requirement("check:manifests")
async def test_a_hop_is_asked_once_by_all_pods_that_are_configured_alike(tmp_path: Path) -> None:
    asked: list[str] = []

    async def ask(hop: str, environ: Mapping[str, str]) -> Opinion:
        asked.append(f"{hop} {environ.get('SIXHOP_LOG__LEVEL', '')}")
        await asyncio.sleep(0)
        return Opinion((hop,))

    def environ(name: str, text: str = "", **more: str) -> dict[str, str]:
        file = tmp_path / name
        file.write_text(text, encoding="utf-8")
        return {"SIXHOP_CONFIG": str(file), "PATH": name, **more}

    hops = PodHops(ask)
    told = await asyncio.gather(
        hops.ask("tool", environ("one.toml")),
        hops.ask("tool", environ("same.toml")),
        hops.ask("model", environ("one.toml")),
        hops.ask("tool", environ("one.toml", SIXHOP_LOG__LEVEL="debug")),
        hops.ask("tool", environ("other.toml", "[log]")),
    )

    assert [opinion.unreadable for opinion in told] == [
        ("tool",), ("tool",), ("model",), ("tool",), ("tool",)
    ]  # fmt: skip
    assert sorted(asked) == ["model ", "tool ", "tool ", "tool debug"]
