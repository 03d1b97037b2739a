"""Defines the settings of the tool room."""

from pathlib import Path

from pydantic import Field

from services.runtime.config import ExistingFolders, HopSettings

_ROOM = Path(__file__).parent


class ToolSettings(HopSettings):
    """Bounds what tools may read, how long they may work and how much they may hold."""

    data_dir: Path = _ROOM / "data"
    """Folder of datasets that a call may use by name; the default holds the shipped sample."""

    default_source: str = "orders"
    """Dataset of `data_dir` that is used when a call brings no data of its own."""

    documents_dir: Path = _ROOM / "documents"
    """Folder of `.md` and `.txt` files that `search` reads; the default is the sample shop's."""

    tool_dirs: ExistingFolders = ()
    """More folders of tool files, one tool per file; none by default."""

    max_source_bytes: int = Field(default=32 * 1024 * 1024, ge=1)
    """Largest data file, in bytes; a larger one belongs in a database."""

    max_rows: int = Field(default=10_000, ge=1)
    """Most rows that one query may return, whatever the call asks for; nobody reads more."""

    max_result_bytes: int = Field(default=2 * 1024 * 1024, ge=1024)
    """Largest query result, in bytes; half of gRPC's usual message limit of 4 MiB."""

    query_timeout_s: float = Field(default=5.0, gt=0)
    """Longest time for one query, seconds; an analyst's question over 32 MiB takes far less."""

    query_memory_mb: int = Field(default=256, ge=32)
    """Memory that one dataset with its queries may use, MB: eight times the largest file; there is
    no spilling to disk."""

    dataset_cache_count: int = Field(default=4, ge=1)
    """Loaded datasets kept for the next query: four of the largest fit into a pod of a gigabyte;
    the least recently used goes first."""

    worker_count: int = Field(default=4, ge=1, le=64)
    """Threads for blocking work; queries use one thread each, and four keep two cores busy."""

    interrupt_wait_s: float = Field(default=0.15, gt=0, le=5)
    """Longest wait for a worker thread to stop after its caller has gone, seconds; leaves 0.1 s of
    the quarter of a second after which no hop has anything left."""
