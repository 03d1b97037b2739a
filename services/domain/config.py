"""Defines the settings of the domain room."""

from pydantic import Field

from services.runtime.config import ExistingFolders, ReplicatedSettings


class DomainSettings(ReplicatedSettings):
    """Says where agents are found, and how fresh the list of tools is."""

    agent_dirs: ExistingFolders = ()
    """More folders of agent files, one agent per file; none by default."""
    tools_refresh_interval_s: float = Field(default=30.0, gt=0, le=3600)
    """How often the tool hop is asked for its tools again, seconds; a new tool may wait half a
    minute, and a call that often costs nothing."""
