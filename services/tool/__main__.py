"""Starts the tool hop."""

from services.runtime.launch import launch

launch(
    "tool",
    "services.tool.service:open_hop",
    "services.tool.config:ToolSettings",
    examine="services.tool.examination:examine",
)
