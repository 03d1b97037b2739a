"""Serves `GET /v1/models` and `GET /v1/models/{model}`: the agents, in OpenAI's words."""

from typing import Literal

import orjson
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from gateway.http.chat_fields import AUTO
from gateway.http.front import front_of, names_of
from gateway.http.operation import (
    CALL_ERRORS,
    CALL_HEADERS,
    CALL_PARAMETERS,
    JSON,
    Answer,
    Operation,
    Parameter,
)
from services.runtime.call import Inbound
from services.runtime.errors import NotFoundError

_AUTO = "Lets sixhop choose the agent that fits the question."


class Model(TypedDict):
    """Is one agent that can be asked."""

    id: str
    """What a request for a chat says as its `model`."""
    object: Literal["model"]
    created: int
    """Always 0: agents have no birthday."""
    owned_by: str
    description: str
    """What it does."""


class ModelList(TypedDict):
    """Lists the agents that can be asked."""

    object: Literal["list"]
    data: list[Model]


async def list_models(request: Request) -> Response:
    """List who can be asked.

    Raises:
        SixhopError: routing cannot be asked.
    """
    inbound, models = await _models(request)
    listed: ModelList = {"object": "list", "data": models}
    return Response(orjson.dumps(listed), headers=names_of(inbound), media_type=JSON)


async def get_model(request: Request) -> Response:
    """Tell of one who can be asked.

    Raises:
        SixhopError: there is no such agent, or routing cannot be asked.
    """
    name = request.path_params["model"]
    inbound, models = await _models(request)
    for model in models:
        if model["id"] == name:
            return Response(orjson.dumps(model), headers=names_of(inbound), media_type=JSON)
    raise NotFoundError("agent", name, [model["id"] for model in models])


async def _models(request: Request) -> tuple[Inbound, list[Model]]:
    front = front_of(request)
    inbound = front.arrive(request, "ListAgents", streaming=False)
    agents = await front.desk.agents(inbound)
    return inbound, [_model(AUTO, _AUTO), *(_model(each.name, each.description) for each in agents)]


def _model(name: str, description: str) -> Model:
    return {
        "id": name,
        "object": "model",
        "created": 0,
        "owned_by": "sixhop",
        "description": description,
    }


LIST_MODELS = Operation(
    method="GET",
    path="/v1/models",
    serve=list_models,
    name="listModels",
    tag="openai",
    summary="List the agents that can be asked",
    parameters=CALL_PARAMETERS,
    answers=[
        Answer(
            description="The agents, and `auto`, which lets sixhop choose among them.",
            kind=ModelList,
            headers=CALL_HEADERS,
        )
    ],
    errors=CALL_ERRORS,
)
GET_MODEL = Operation(
    method="GET",
    path="/v1/models/{model}",
    serve=get_model,
    name="getModel",
    tag="openai",
    summary="Tell of one agent",
    parameters=(Parameter(name="model", where="path", description="Its name."), *CALL_PARAMETERS),
    answers=[Answer(description="The agent.", kind=Model, headers=CALL_HEADERS)],
    errors=CALL_ERRORS,
)
