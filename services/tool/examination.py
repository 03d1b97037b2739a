"""Holds what the tools declare against what their callers wait."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from services.runtime.call import Callee, Group
from services.runtime.checks.attempts import never_at_first
from services.runtime.checks.finding import Finding, Severity, violation, warning
from services.runtime.checks.tree import Tree, read_tree
from services.runtime.config import Config, ConfigError
from services.runtime.ladder import as_binding
from services.runtime.policies.deadline import margin_s
from services.runtime.rungs import Leg
from services.runtime.setting_text import nearest, refusal
from services.runtime.topology import DOMAIN, TOOL
from services.tool.config import ToolSettings
from services.tool.declaration import Tool
from services.tool.errors import ToolDeclarationError
from services.tool.registry import Registry

EDGE = f"{DOMAIN} → {TOOL}"


def examine(config: Config) -> list[Finding]:
    """Return what is found in the tools of a configuration.

    Raises:
        ConfigError: a tool does not declare itself as it must.
    """
    settings = config.section(TOOL, ToolSettings)
    return as_binding(tool_findings(load_registry(settings), settings, config), config)


def load_registry(settings: ToolSettings) -> Registry:
    """Return the tools.

    Raises:
        ConfigError: one does not declare itself as it must.
    """
    try:
        return Registry.load(settings)
    except ToolDeclarationError as error:
        raise ConfigError(str(error)) from error


def tool_findings(
    tools: Iterable[Tool[Any]], settings: ToolSettings, config: Config
) -> list[Finding]:
    """Return what is found in some tools, and in the settings that name one."""
    tree, tools = read_tree(config), list(tools)
    found = [finding for tool in tools for finding in _of_one(tool, settings, tree)]
    return [*found, *_unknown([tool.name for tool in tools], tree)]


def _unknown(names: Sequence[str], tree: Tree) -> Iterator[Finding]:
    policies, known = tree.policies, [f"{TOOL}/{name}" for name in names]
    for path, keys in (
        (("hedge", "keys"), policies.hedge.keys),
        (("retry", "not_for"), policies.retry.not_for),
    ):
        for key in sorted(keys):
            if key.startswith(f"{TOOL}/") and key not in known:
                advice = f"no tool has this name{nearest(key, known)}"
                yield violation("known-tools", refusal(path, key, advice, item=True))


def _of_one(tool: Tool[Any], settings: ToolSettings, tree: Tree) -> Iterator[Finding]:
    yield from _timeout(tool, tree)
    if tool.group is Group.DATA and settings.query_timeout_s > tool.timeout_s:
        yield warning(
            "tool-query-fits",
            f"{EDGE}/{tool.name}: tool.query_timeout_s {settings.query_timeout_s:g} s is never "
            f"reached, because the tool declares timeout_s {tool.timeout_s:g} s; lower the first",
        )
    if not tree.engine:
        return
    allowed = tree.policies.bulkhead.size(tool.group).allowed
    if tool.max_concurrency > allowed:
        yield warning(
            "tool-has-permits",
            f"{EDGE}/{tool.name}: the tool declares max_concurrency {tool.max_concurrency}, and "
            f"bulkhead.{tool.group} has {allowed} permits for all tools of its group; raise "
            f"bulkhead.{tool.group}.permits or lower the first",
        )
    callee = Callee(
        key=f"{TOOL}/{tool.name}",
        idempotent=tool.idempotent,
        slow_call_s=tool.slow_after_s,
        timeout_s=tool.timeout_s,
    )
    if problem := never_at_first(_leg(tree), callee, tree.policies.retry):
        yield warning("tool-retry-at-first", problem)
    if tool.slow_after_s > tool.timeout_s:
        yield warning(
            "tool-slow-before-late",
            f"{EDGE}/{tool.name}: the tool declares that a call is slow after "
            f"{tool.slow_after_s:g} s, and gives up after {tool.timeout_s:g} s already, so its "
            "breaker sees no slow call; lower slow_call_s",
        )


def _leg(tree: Tree) -> Leg:
    """Return the way to the tools; there is one."""
    return next(leg for leg in tree.legs if leg.callee == TOOL)


def _timeout(tool: Tool[Any], tree: Tree) -> Iterator[Finding]:
    step_s = tree.config.limits(TOOL).step_timeout_s
    longest_s = step_s - margin_s(step_s)
    given_s = _leg(tree).deadline_s
    own_s = given_s - margin_s(given_s)
    if tool.timeout_s > longest_s:
        yield Finding(
            rule="tool-timeout-fits",
            severity=Severity.VIOLATION,
            text=(
                f"{EDGE}/{tool.name}: the tool declares timeout_s {tool.timeout_s:g} s, and of "
                f"calls.tool.step_timeout_s {step_s:g} s it never has more than {longest_s:.1f} s; "
                "lower the first or raise the second"
            ),
        )
    elif tool.timeout_s > own_s:
        default_s = tree.config.deadline.default_deadline_s
        yield warning(
            "tool-timeout-reached",
            f"{EDGE}/{tool.name}: the tool declares timeout_s {tool.timeout_s:g} s, and of "
            f"deadline.default_deadline_s {default_s:g} s only {own_s:.1f} s are left for it; "
            "lower the first, or let callers ask with a longer deadline",
        )
