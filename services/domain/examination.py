"""Loads the agents that a configuration names, or says what is wrong with them."""

from collections.abc import Iterator

from services.domain.agent import AgentRegistry
from services.domain.config import DomainSettings
from services.runtime.checks.finding import Finding, violation
from services.runtime.config import Config, ConfigError
from services.runtime.plugins import PluginError
from services.runtime.setting_text import nearest, refusal
from services.runtime.topology import DOMAIN, ROUTING

AGENT_SETTINGS = ("fallback_agent", "data_agent")
"""The settings of routing that name an agent; only this room knows which there are."""


def load_agents(settings: DomainSettings) -> AgentRegistry:
    """Return the agents.

    Raises:
        ConfigError: a file or package does not declare an agent as it must.
    """
    try:
        return AgentRegistry.load(settings.agent_dirs)
    except PluginError as error:
        raise ConfigError(str(error)) from error


def examine(config: Config) -> list[Finding]:
    """Return what is found in the agents, and in the settings that name one.

    Raises:
        ConfigError: a file or package does not declare an agent as it must.
    """
    return list(_unknown(load_agents(config.section(DOMAIN, DomainSettings)), config))


def _unknown(agents: AgentRegistry, config: Config) -> Iterator[Finding]:
    names = [agent.name for agent in agents]
    for setting in AGENT_SETTINGS:
        name = config.raw.get(ROUTING, {}).get(setting)
        if isinstance(name, str) and name not in names:
            advice = f"no agent has this name{nearest(name, names)}"
            yield violation("known-agents", refusal((ROUTING, setting), name, advice))
