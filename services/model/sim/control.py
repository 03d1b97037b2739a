"""Answers what is no completion: models, health, tokens, and the ways to look and steer."""

from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

import orjson

from services.model.sim.answering import is_key
from services.model.sim.door import Request
from services.model.sim.faults import UnknownFaultError
from services.model.sim.log import CONDITIONS
from services.model.sim.script import BadScriptError, Script, make_script, read_script
from services.model.sim.wording import tokenize
from services.model.sim.world import World
from services.runtime.config import ConfigError

MAX_WAIT_S = 60.0
Answer = tuple[int, Mapping[str, Any]]
CREATED = 1_767_225_600


class Steered(Protocol):
    """Is what can be steered."""

    world: World

    def play(self, script: Script) -> None:
        """Put a script in force instead of the one before."""
        ...

    def reset(self) -> None:
        """Begin again: forget what was, and play the first script from its start."""
        ...

    def refuse(self, length_s: float) -> None:
        """Refuse connections for a while."""
        ...


async def control(steered: Steered, request: Request) -> Answer:
    """Return the status and the document that answer a request."""
    parts = urlsplit(request.target)
    path = parts.path.removeprefix("/v1") if parts.path != "/v1" else parts.path
    try:
        match request.method, path:
            case "GET", "/sim/wait":
                return await _wait(steered.world, parse_qs(parts.query))
            case "GET", "/models" | "/health":
                return await _side(steered.world, path, request)
            case "GET", _:
                return _look(steered.world, path, parse_qs(parts.query))
            case "POST", _:
                return _steer(steered, path, request)
    except (UnknownFaultError, BadScriptError, ConfigError, ValueError) as error:
        return 400, _error(str(error))
    return 405, _error(f"there is no {request.method} here")


async def _side(world: World, path: str, request: Request) -> Answer:
    """Answer what clients ask beside completions."""
    settings = world.settings
    world.log.side_counts[path] = world.log.side_counts.get(path, 0) + 1
    await world.clock.sleep(settings.side_after_s)
    if path == "/health" and settings.serves_health:
        return 200, world.health()
    if path == "/health" or not settings.serves_models:
        return 404, _error(f"there is no {path}")
    if not is_key(settings, request.headers.get("authorization", "")):
        return 401, _error("Authentication Fails (no such user)")
    models = [
        {"id": name, "object": "model", "created": CREATED, "owned_by": "sim"}
        for name in settings.models
    ]
    return 200, {"object": "list", "data": models}


def _look(world: World, path: str, query: Mapping[str, list[str]]) -> Answer:
    match path:
        case "/sim/log":
            return 200, world.log.as_json(query.get("request_id", [""])[0])
        case "/sim/faults":
            return 200, world.selector.names()
        case "/sim/script":
            timeline = world.timeline
            return 200, {
                "position_s": round(timeline.position_s(), 3),
                "waiting": timeline.waiting,
                "step": world.step.model_dump(),
            }
        case "/verdict" | "/sim/verdict":
            return 200, world.verdict()
    return 404, _error(f"there is no {path}")


def _steer(steered: Steered, path: str, request: Request) -> Answer:
    world = steered.world
    match path:
        case "/tokenize":
            text = str(_table(request).get("content", ""))
            return 200, {"tokens": tokenize(text)}
        case "/sim/faults":
            given = _table(request)
            world.selector.replace(_rules(given, "rules"), _rules(given, "queue"))
            steered.refuse(float(str(given.get("refuse_s", 0))))
            return 200, world.selector.names()
        case "/sim/settings":
            world.change(_table(request))
            return 200, {"settings": world.settings.model_dump(mode="json")}
        case "/sim/script":
            text = request.body.decode()
            table = text.lstrip().startswith("{")
            steered.play(make_script(orjson.loads(text)) if table else read_script(text))
            return 200, {"step": world.step.model_dump()}
        case "/sim/reset":
            steered.reset()
            return 200, {}
    return 404, _error(f"there is no {path}")


async def _wait(world: World, query: Mapping[str, list[str]]) -> Answer:
    timeout_s = min(MAX_WAIT_S, float(query.get("timeout_s", ["5"])[0]))
    wanted = [(name, int(values[0])) for name, values in query.items() if name in CONDITIONS]
    try:
        await world.log.wait_until(
            lambda log: all(log.reached(name, count) for name, count in wanted),
            timeout_s=timeout_s,
        )
    except TimeoutError:
        return 504, world.log.as_json()
    return 200, world.log.as_json()


def _table(request: Request) -> dict[str, Any]:
    """Return the object that a request holds; no body is an empty one.

    Raises:
        ValueError: it holds none.
    """
    found = orjson.loads(request.body or b"{}")
    if not isinstance(found, dict):
        raise ValueError("the body must be an object of JSON")
    return found


def _rules(given: Mapping[str, Any], name: str) -> list[Any]:
    found = given.get(name, [])
    if not isinstance(found, list) or not all(isinstance(each, str | dict) for each in found):
        raise ValueError(f"{name} must be a list of faults, each a text or a table")
    return found


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "code": None}}
