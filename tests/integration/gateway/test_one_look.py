"""Counts how often the doors look at what one request shows."""

from datetime import datetime
from pathlib import Path

import pytest

from gateway.access.keys import KeyRing
from services.runtime import credential
from services.runtime.client import open_channel
from services.runtime.topology import GATEWAY
from sixhop.gateway.v1 import gateway_pb2
from sixhop.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from sixhop.type.v1 import run_pb2
from tests.e2e.tenants.asking import put_key
from tests.integration.gateway.doors import open_door
from tests.requirements import requirement


@requirement("tenants:looked-at-once")
async def test_every_request_is_looked_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    counts: dict[str, int] = {}
    look = KeyRing.tenant_of

    def counted(keys: KeyRing, key: str, now: datetime) -> str:
        looked.append(key)
        return look(keys, key, now)

    monkeypatch.setattr(KeyRing, "tenant_of", counted)
    # However slow this machine is.
    monkeypatch.setattr(credential, "KNOWN_FOR_S", 60.0)
    path = tmp_path / "keys.json"
    right = put_key(path, "acme")
    said = {"messages": [{"role": "user", "content": "hello"}]}
    asks = {
        "/v1/chat/completions": said,
        "/v1/responses": {"input": "hello"},
        "/v1/runs": {"question": "hello"},
    }
    async with open_door(GATEWAY__KEYS_FILE=str(path)) as door:
        for key, wanted in ((right, (200, 202)), ("sk-sixhop-wrong", (401,))):
            shown = {"authorization": f"Bearer {key}"}
            for where, body in asks.items():
                looked.clear()
                async with door.http.post(where, headers=shown, json=body) as answer:
                    assert answer.status in wanted, await answer.text()
                counts[f"{where} {key == right}"] = len(looked)
        looked.clear()
        async with open_channel(door.suite.config.address(GATEWAY)) as channel:
            request = gateway_pb2.AskRequest(question=run_pb2.Question(text="hello"))
            metadata = (("authorization", f"Bearer {right}"),)
            await GatewayServiceStub(channel).Ask(request, timeout=5.0, metadata=metadata)
        counts["grpc"] = len(looked)

    assert counts == dict.fromkeys(counts, 1)
