"""Says where runs and their files are."""

from urllib.parse import quote


def run_address(run_id: str) -> str:
    """Return where a run is."""
    return f"/v1/runs/{quote(run_id, safe='')}"


def artifact_address(run_id: str, name: str) -> str:
    """Return where a file of a run is."""
    return f"{run_address(run_id)}/artifacts/{quote(name, safe='')}"
