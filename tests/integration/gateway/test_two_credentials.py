"""Holds callers to showing one credential: of two, nobody picks one for them."""

from pathlib import Path
from typing import Any

import grpc
import pytest

from services.runtime.client import open_channel
from services.runtime.topology import GATEWAY
from sixhop.gateway.v1 import gateway_pb2
from sixhop.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from sixhop.type.v1 import run_pb2
from tests.contract.wire import infos, rich_status
from tests.e2e.tenants.asking import put_key
from tests.integration.gateway.doors import open_door
from tests.requirements import requirement


@requirement("tenants:identified")
async def test_who_shows_two_keys_is_refused_at_both_doors(tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    shown = [("authorization", f"Bearer {put_key(keys, tenant)}") for tenant in ("acme", "globex")]
    body = {"model": "chat", "messages": [{"role": "user", "content": "hello"}]}
    asks: list[tuple[str, str, dict[str, Any]]] = [
        ("POST", "/v1/chat/completions", {"json": body}),
        ("POST", "/v1/runs", {"json": {"question": "hello"}}),
        ("GET", "/v1/runs", {}),
        ("GET", "/v1/state", {}),
    ]
    refused = []
    request = gateway_pb2.AskRequest(question=run_pb2.Question(text="hello"))
    async with open_door(GATEWAY__KEYS_FILE=str(keys)) as door:
        for method, path, more in asks:
            async with door.http.request(method, path, headers=shown, **more) as answer:
                refused.append((answer.status, (await answer.json())["error"]))
        async with open_channel(door.suite.config.address(GATEWAY)) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await GatewayServiceStub(channel).Ask(request, timeout=5.0, metadata=shown)

    assert [status for status, _ in refused] == [400] * len(asks)
    assert {error["param"] for _, error in refused} == {"authorization"}
    (info,) = infos(rich_status(caught.value))
    assert (info.reason, info.metadata["cause"]) == ("UNAUTHENTICATED", "several_keys")
