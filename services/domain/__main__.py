"""Starts the domain hop."""

from services.runtime.launch import launch

launch(
    "domain",
    "services.domain.service:open_hop",
    "services.domain.config:DomainSettings",
    examine="services.domain.examination:examine",
)
