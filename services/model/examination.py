"""Holds the settings of the provider against what a call to it may take."""

from services.model.catalog import find_backend
from services.model.config import ModelSettings
from services.runtime.checks.finding import Finding, Severity
from services.runtime.config import Config
from services.runtime.ladder import as_binding
from services.runtime.topology import LLM, MODEL, MODEL_BACKUP


def examine(config: Config) -> list[Finding]:
    """Return what is found in the model hop's section, and in that of the model that stands in.

    Raises:
        ConfigError: it names no provider or backend that can be used.
    """
    return [
        finding
        for name in (MODEL, MODEL_BACKUP)
        if config.runs(name)
        for finding in _examined(name, config)
    ]


def _examined(name: str, config: Config) -> list[Finding]:
    settings = config.section(name, ModelSettings)
    settings.provider(config.address(LLM), name)
    find_backend(settings.backend, settings.backend_dirs)
    return as_binding(connect_findings(settings, config, name), config)


def connect_findings(settings: ModelSettings, config: Config, name: str = MODEL) -> list[Finding]:
    """Return what is wrong with the wait for a connection, in the section of this name."""
    step_s = config.limits(LLM).step_timeout_s
    if settings.connect_timeout_s < step_s:
        return []
    return [
        Finding(
            rule="connect-fits",
            severity=Severity.VIOLATION,
            text=(
                f"{name} → {LLM}: {name}.connect_timeout_s {settings.connect_timeout_s:g} s leaves "
                f"nothing of calls.llm.step_timeout_s {step_s:g} s for an answer; lower the first "
                "below the second"
            ),
        )
    ]
