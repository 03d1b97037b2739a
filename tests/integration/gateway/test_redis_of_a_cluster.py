"""Starts a real Redis as the manifests start it."""

from pathlib import Path
from typing import Any

import pytest
import redis
import yaml

from tests.redis_server import running_redis
from tests.requirements import requirement

MANIFEST = Path(__file__).resolve().parents[3] / "k8s/components/redis/redis.yaml"
PASSWORD = 'a "quoted" word'


def arguments(folder: Path) -> list[str]:
    """Return what the container's process is told, with a password and a folder of this machine."""
    bodies = yaml.safe_load_all(MANIFEST.read_text(encoding="utf-8"))
    (pod,) = (b["spec"]["template"]["spec"] for b in bodies if b["kind"] == "Deployment")
    (container,) = pod["containers"]
    given = {"$(PASSWORD)": PASSWORD, "/data": str(folder)}
    return [given.get(text, text) for text in container["args"]]


@requirement("cluster:redis")
def test_the_redis_of_a_cluster_wants_a_password_and_forgets_what_is_oldest(
    tmp_path: Path,
) -> None:
    with running_redis(tmp_path, arguments(tmp_path)) as server:
        stranger = redis.Redis(port=server.port)
        with stranger, pytest.raises(redis.AuthenticationError):
            stranger.ping()
        with redis.Redis(port=server.port, password=PASSWORD) as client:
            told: Any = client.config_get("maxmemory*", "save", "appendonly")

    # Not by the time that is left: counts of tenants have the least.
    assert told["maxmemory-policy"] == "allkeys-lru"
    assert int(told["maxmemory"]) == 1536 * 1024 * 1024
    assert (told["save"], told["appendonly"]) == ("", "no")
