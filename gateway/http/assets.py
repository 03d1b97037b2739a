"""Serves the page at `/`: files of this package, which load nothing from anywhere else."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from gateway.http.operation import Serve
from services.runtime.errors import NotFoundError

FOLDER = Path(__file__).parent / "page"
INDEX = "index.html"
_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}
# No script and no style but our files, no address but our own; pictures and PDFs of runs are blobs.
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' blob:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    )
)
_HEADERS = {
    # It is asked for every time, and sent only when it has changed.
    "cache-control": "no-cache",
    "content-security-policy": _POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


@dataclass(frozen=True, slots=True)
class _Asset:
    content: bytes
    media_type: str
    etag: str


def read_assets(folder: Path = FOLDER) -> Mapping[str, "_Asset"]:
    """Return every file of the page, by its name."""
    return {path.name: _asset(path) for path in sorted(folder.iterdir()) if path.is_file()}


def _asset(path: Path) -> _Asset:
    content = path.read_bytes()
    etag = f'"{sha256(content).hexdigest()[:32]}"'
    return _Asset(content, _MEDIA_TYPES[path.suffix], etag)


_ASSETS = read_assets()


async def get_page(request: Request) -> Response:
    """Give the page."""
    return _give(request, INDEX)


async def get_asset(request: Request) -> Response:
    """Give a file that the page loads.

    Raises:
        NotFoundError: there is no such file.
    """
    return _give(request, request.path_params["name"])


def _give(request: Request, name: str) -> Response:
    asset = _ASSETS.get(name)
    if asset is None:
        raise NotFoundError("page", f"/page/{name[:100]}")
    headers = {**_HEADERS, "etag": asset.etag}
    known = [each.strip() for each in request.headers.get("if-none-match", "").split(",")]
    if asset.etag in known:
        return Response(status_code=304, headers=headers)
    return Response(asset.content, headers=headers, media_type=asset.media_type)


PAGE_PATHS: Mapping[str, Serve] = {"/": get_page, "/page/{name}": get_asset}
