"""Finds who serves a request, by its path and its method."""

from collections.abc import Mapping, Sequence

from starlette.datastructures import URL
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import compile_path
from starlette.types import Scope

from gateway.http.front import refused
from gateway.http.operation import Operation, Serve
from services.runtime.errors import InvalidArgumentError, NotFoundError

By = dict[str, Serve]
"""Who serves a path, by the method."""


class Paths:
    """Holds what is served.

    Not Starlette's router: it serves what it finds, and each of its coroutines would be woken with
    every event of a stream. Patterns of paths are as it reads them.
    """

    def __init__(self, operations: Sequence[Operation], pages: Mapping[str, Serve]) -> None:
        """Take the endpoints, and what browsers get, by its path."""
        self.served: dict[str, By] = {path: {"GET": serve} for path, serve in pages.items()}
        """Who serves each path. One for all methods, so that a wrong one is told the right ones."""
        for each in operations:
            self.served.setdefault(each.path, {})[each.method] = each.serve
        self._plain = {path: by for path, by in self.served.items() if "{" not in path}
        self._patterns = [
            (compile_path(path)[0], by) for path, by in self.served.items() if "{" in path
        ]

    def find(self, scope: Scope) -> Serve:
        """Return who serves a request, and note in it what its path names.

        Raises:
            NotFoundError: nobody does.
        """
        path, method = scope["path"], scope["method"]
        by = self._plain.get(path) or self._match(path, scope)
        if by is None:
            there = _without_slash(path)
            if there in self._plain or self._match(there, scope):
                return _redirect
            raise NotFoundError("page", path[:200])
        return by.get("GET" if method == "HEAD" else method) or _refuse_method(by)

    def _match(self, path: str, scope: Scope) -> By | None:
        for pattern, by in self._patterns:
            if matched := pattern.match(path):
                scope["path_params"] = matched.groupdict()
                return by
        return None


def _without_slash(path: str) -> str:
    return path.rstrip("/")


async def _redirect(request: Request) -> Response:
    """Send who has written a slash too many to the right place."""
    there = {**request.scope, "path": _without_slash(request.scope["path"])}
    return RedirectResponse(str(URL(scope=there)))


def _refuse_method(by: By) -> Serve:
    allowed = ", ".join([*by, "HEAD"] if "GET" in by else by)

    async def refuse(request: Request) -> Response:
        error = InvalidArgumentError("", "Method Not Allowed; see /openapi.json")
        response = refused(request, error)
        response.status_code = 405
        response.headers["allow"] = allowed
        return response

    return refuse
