"""Holds a reload to taking the whole configuration or nothing, and to saying which."""

import asyncio
import io
import json
from pathlib import Path
from typing import Any

import pytest

from services.runtime.clock import ManualClock
from services.runtime.config import Config, ConfigError, load_config
from services.runtime.credential import Credential
from services.runtime.outgoing import Outgoing
from services.runtime.policies.deadline import ServerDeadline, margin_s
from services.runtime.reload import Live, Reading, read_again, reload, reload_whenever
from services.runtime.stack import EdgeRules, client_stack, server_stack
from services.runtime.statistics import Activity
from services.runtime.telemetry import configure_logging
from services.runtime.tenancy import Tenancy
from tests.stacks import policies, server_guards
from tests.unit.runtime.policies.samples import inbound
from tests.waiting import until


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a configuration file that says little."""
    path = tmp_path / "sixhop.toml"
    path.write_text("[breaker]\nmin_calls = 10\n")
    return path


@pytest.fixture
def log() -> io.BytesIO:
    """Return what is logged."""
    target = io.BytesIO()
    configure_logging("gateway", "pod", "warning", ManualClock(), target)
    return target


def running(file: Path, hop: str = "gateway") -> Live:
    """Return what follows the configuration in a hop that was started with a file."""
    clock, activity = ManualClock(), Activity()
    client, server = policies(clock), server_guards(clock)
    edge = EdgeRules(default_deadline_s=30.0, max_deadline_s=120.0)
    guards = server_stack(clock, activity, edge, server, log_calls=False)
    config = load_config(file, {})
    live = Live(hop, config, guards, server, client)
    stack = client_stack(clock, activity, client)
    limits = config.limits("routing")
    live.outgoing.append(Outgoing("gateway", "routing", limits, stack, clock))
    return live


async def here(old: Config) -> Reading:
    """Read again without a thread, for which the time of these tests would not wait."""
    return read_again(old, Path(old.source))


def lines(log: io.BytesIO) -> list[dict[str, Any]]:
    """Return the lines that were logged."""
    return [json.loads(line) for line in log.getvalue().splitlines()]


async def reloaded(live: Live, text: str, log: io.BytesIO) -> dict[str, Any]:
    """Change the file, reload, and return the line that says what came of it."""
    _write(live, text)
    await reload(live, here)
    await until(lambda: bool(lines(log)))
    (line,) = lines(log)
    return line


def _write(live: Live, text: str) -> None:
    Path(live.config.source).write_text(text)


async def test_limits_of_tenants_follow_the_file(file: Path, log: io.BytesIO) -> None:
    live = running(file)
    live.tenancy = Tenancy(live.config.tenants, ManualClock(), margin_s)

    line = await reloaded(live, "[tenants.acme]\nmax_deadline_s = 5\n", log)

    assert line["changed"]["tenants.acme.max_deadline_s"] == "None → 5.0"
    limits = await live.tenancy.identification.limits_of(Credential(), 1.0)
    assert limits is live.config.tenants.default
    assert live.tenancy.tenants.of("acme").max_deadline_s == 5.0


async def test_everything_that_may_change_follows_the_file(file: Path, log: io.BytesIO) -> None:
    live = running(file)
    text = """
        [breaker]
        min_calls = 3
        [retry]
        max_tokens = 20
        [limit]
        max_inflight = 7
        [calls.routing]
        step_timeout_s = 4
        [deadline]
        share = 0.5
        default_deadline_s = 20
        [log]
        calls = "all"
    """

    line = await reloaded(live, text, log)

    assert line["event"] == "config_reloaded"
    assert line["changed"] == {
        "breaker.min_calls": "10 → 3",
        "calls.routing.step_timeout_s": "5.0 → 4.0",
        "deadline.default_deadline_s": "30.0 → 20.0",
        "deadline.share": "0.6 → 0.5",
        "limit.max_inflight": "256 → 7",
        "log.calls": "edge → all",
        "retry.max_tokens": "10.0 → 20.0",
    }
    limits = live.outgoing[0].limits
    assert (limits.step_timeout_s, limits.share) == (4.0, 0.5)
    assert live.server is not None
    assert live.server.admission.snapshot().limit == 7
    (deadline,) = [guard for guard in live.guards if isinstance(guard, ServerDeadline)]
    call = inbound(float("inf"))
    deadline.before(call)
    assert call.deadline == call.arrived_at + 20.0
    assert live.config.raw["breaker"] == {"min_calls": 3}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[breaker]\nmin_calls = 0\n", "breaker"),
        ("[breaker]\nmin_call = 5\n", "did you mean min_calls"),
        ("[calls.tool]\nstep_timeout_s = 'soon'\n", "[calls.tool] step_timeout_s"),
        ("[calls.tool\n", "cannot be read"),
        # Every value is good by itself: the check of the whole tree refuses them together.
        ("[calls.tool]\nstep_timeout_s = 1\n", "does not fit into"),
        ("[hedge]\nkeys = ['tool/sql']\n", "retry.not_for"),
    ],
)
async def test_a_bad_file_changes_nothing_and_is_told(
    file: Path, log: io.BytesIO, text: str, said: str
) -> None:
    live = running(file)
    before = live.config

    line = await reloaded(live, "[limit]\nmax_inflight = 7\n" + text, log)

    assert (line["event"], line["level"]) == ("reload_refused", "error")
    assert said in line["problem"]
    assert live.config is before
    assert live.server is not None
    assert live.server.admission.snapshot().limit == 256


async def test_what_is_fixed_is_refused_by_name_and_takes_the_rest_with_it(
    file: Path, log: io.BytesIO
) -> None:
    live = running(file)
    text = """
        [limit]
        max_inflight = 7
        [tool]
        port = 1
        [model]
        api_key = "sk-secret"
        [engine]
        enabled = true
    """

    line = await reloaded(live, text, log)

    assert line["event"] == "reload_refused"
    assert line["problem"].startswith("engine.enabled, model.api_key, tool.port: cannot change")
    assert "sk-secret" not in json.dumps(line)
    assert live.server is not None
    assert live.server.admission.snapshot().limit == 256


async def test_switches_that_a_stack_is_made_with_are_fixed(file: Path, log: io.BytesIO) -> None:
    live = running(file)

    line = await reloaded(
        live, "[deadline]\nmode = 'static'\n[bulkhead]\nshared = true\nmax_wait_s = 1\n", log
    )

    assert line["event"] == "reload_refused"
    assert line["problem"].startswith("bulkhead.shared, deadline.mode: cannot change")


def test_a_file_that_is_gone_is_no_wish_for_the_defaults(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)
    old = load_config(None, {})
    file.unlink()

    with pytest.raises(ConfigError, match="put it back"):
        read_again(old, None)


def test_the_environment_still_wins_over_the_file(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIXHOP_BREAKER__MIN_CALLS", "12")
    old = load_config(file)
    file.write_text("[breaker]\nmin_calls = 3\nmax_probes = 2\n")

    reading = read_again(old, file)

    assert reading.policies.breaker.min_calls == 12
    assert reading.changed == {"breaker.max_probes": "3 → 2"}


def test_a_default_that_is_written_down_is_no_change(file: Path) -> None:
    old = load_config(file, {})
    file.write_text("[breaker]\nmin_calls = 10\nwindow_s = 10\n[calls.tool]\nread_timeout_s = 15\n")

    assert read_again(old, file).changed == {}


def test_a_wrong_file_raises_before_anything_is_read_into_a_policy(file: Path) -> None:
    old = load_config(file, {})
    file.write_text("[nonsense]\n")

    with pytest.raises(ConfigError, match="nonsense"):
        read_again(old, file)


async def test_asking_often_while_it_reads_reads_once_more(file: Path, log: io.BytesIO) -> None:
    live = running(file)
    asked = asyncio.Event()
    following = asyncio.create_task(reload_whenever(asked, live, here))
    try:
        asked.set()
        await until(lambda: not asked.is_set())
        for _ in range(5):
            asked.set()
        await until(lambda: len(lines(log)) == 2)
        # Nobody has asked since: as many turns as a third one would need.
        await until(lambda: not asked.is_set())
    finally:
        following.cancel()
        await asyncio.wait({following})

    assert [line["event"] for line in lines(log)] == ["config_reloaded"] * 2
