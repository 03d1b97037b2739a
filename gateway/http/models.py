"""Serves `GET /v1/models`: the agents, in OpenAI's words."""

from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response

from gateway.http.arriving import arrival_of
from gateway.http.chat_request import AUTO
from gateway.http.front import front_of, names_of


async def list_models(request: Request) -> Response:
    """List who can be asked.

    Raises:
        SixhopError: routing cannot be asked.
    """
    front = front_of(request)
    inbound = front.desk.arrive("ListAgents", arrival_of(request.headers), streaming=False)
    agents = await front.desk.agents(inbound)
    data = [_model(AUTO, "Lets sixhop choose the agent that fits the question.")]
    data += [_model(each.name, each.description) for each in agents]
    return Response(
        orjson.dumps({"object": "list", "data": data}),
        headers=names_of(inbound),
        media_type="application/json",
    )


def _model(name: str, description: str) -> dict[str, Any]:
    return {
        "id": name,
        "object": "model",
        "created": 0,
        "owned_by": "sixhop",
        "description": description,
    }
