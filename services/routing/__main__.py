"""Starts the routing hop."""

from services.runtime.launch import launch

launch("routing", "services.routing.service:open_hop", "services.routing.config:RoutingSettings")
