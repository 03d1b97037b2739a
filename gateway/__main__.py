"""Starts the gateway hop."""

from services.runtime.launch import launch

launch(
    "gateway",
    "gateway.service:open_hop",
    "gateway.config:GatewaySettings",
    examine="gateway.access.examination:examine",
)
