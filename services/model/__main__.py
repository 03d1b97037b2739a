"""Starts the model hop."""

from services.runtime.launch import launch

launch(
    "model",
    "services.model.service:open_hop",
    "services.model.config:ModelSettings",
    examine="services.model.examination:examine",
    sections={
        "model_backup": "services.model.config:ModelSettings",
        # The local model and the simulator are processes of this room, and not hops.
        "llm": "services.model.local.config:LlmSettings",
        "sim": "services.model.sim.config:SimSettings",
    },
)
