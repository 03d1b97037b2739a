"""Tells how the model hop is, in the words of the providers that have a page for it."""

from dataclasses import dataclass

import orjson

from services.runtime.page_door import Page


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthPage:
    """Is what the page tells."""

    ready: bool
    """Whether this process takes calls."""
    detail: str = ""
    """Why it does not."""
    estimated_qps: float | None = None
    """How many more calls per second it takes; None is not known."""
    avg_latency_s: float | None = None
    """What a call takes on average; None is not known."""

    def as_page(self) -> Page:
        """Return it as an answer."""
        latency_s = self.avg_latency_s
        body = {
            "status": "ok" if self.ready else self.detail or "not ready",
            "estimated_qps": self.estimated_qps,
            "avg_latency_ms": None if latency_s is None else round(1000 * latency_s, 3),
        }
        return Page(orjson.dumps(body), 200 if self.ready else 503)


ALIVE = Page(b'{"status":"ok"}')
"""Is told as long as there is somebody to tell it."""
