"""Posts to a provider over HTTP, and reads its answer as a stream of bytes."""

import asyncio
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp
import orjson

from services.model.backend import Provider
from services.model.complaints import complained, read_complaint, refused
from services.model.faults import fault
from services.model.refusal import Exchange, protocol_error
from services.model.vitals import current_vitals
from services.runtime.call import Call
from services.runtime.clock import Clock
from services.runtime.doorbell import Doorbell
from services.runtime.errors import SixhopError
from services.runtime.http_pools import HttpPool, Sent

DEADLINE_HEADER = "X-Sixhop-Deadline-Ms"
REQUEST_ID_HEADER = "x-request-id"
EVENT_STREAM = "text/event-stream"
JSON = "application/json"

BODY_TIMEOUT_S = 0.5
"""How long the body of a refusal may take: its status alone says enough."""
MAX_BODY_BYTES = 64 * 1024
MAX_RETRY_AFTER_S = 3600.0
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")
"""Whole seconds by the standard; some write fractions."""


class ByteStream:
    """Reads the body of one answer as it comes."""

    def __init__(self, sent: Sent, provider: Provider) -> None:
        """Take an answer whose headers are there."""
        self._sent = sent
        self._provider = provider
        self._fault: SixhopError | None = None
        self._bell = Doorbell()
        self._end: asyncio.Task[None] | None = None
        """Waits for the end of the answer, once somebody lets bytes gather."""

    async def read(self) -> bytes:
        """Return what has arrived, waiting for at least one byte; empty at the end.

        Raises:
            DependencyFailedError: the connection broke; what came before was returned before.
        """
        if self._fault is not None:
            raise self._fault
        try:
            return await self._sent.response.content.readany()
        except aiohttp.ClientError as error:
            self._fault = fault(error, self._provider)
            if rest := _unread(self._sent.response.content):
                return rest
            raise self._fault from None

    async def gather(self, length_s: float) -> None:
        """Let bytes arrive for a while; return sooner when the answer ends, well or not."""
        if self._end is None:
            self._end = asyncio.create_task(self._sent.response.content.wait_eof())
            self._end.add_done_callback(self._ended)
        if not self._end.done():
            await self._bell.wait(length_s)

    def abort(self) -> None:
        """Close the connection now, unless the answer was read to its end."""
        if self._end is not None:
            self._end.cancel()
        self._sent.abort()

    def _ended(self, end: "asyncio.Task[None]") -> None:
        if not end.cancelled():
            # Looked at: the next read tells it.
            end.exception()
        self._bell.ring()


class HttpDoor:
    """Is the way to one provider."""

    def __init__(self, pool: HttpPool, provider: Provider, clock: Clock) -> None:
        """Take the connections of the provider's group."""
        self._pool = pool
        self._provider = provider
        self._clock = clock

    async def post(self, url: str, body: bytes, call: Call, exchange: Exchange) -> ByteStream:
        """Send a request, and return its answer once it has begun well.

        Raises:
            SixhopError: the provider cannot be reached, refuses, or answers no event stream.
        """
        vitals = current_vitals(self._clock)
        vitals.knock()
        try:
            sent = await self._pool.send(
                "POST",
                url,
                body=body,
                headers=self._headers(call),
                connect_timeout_s=min(self._provider.connect_timeout_s, call.attempt_timeout_s),
                on_connected=vitals.reach,
            )
        except aiohttp.ClientError as error:
            raise fault(error, self._provider) from None
        stream = ByteStream(sent, self._provider)
        try:
            await self._check(sent.response, stream, exchange)
        except BaseException:
            stream.abort()
            raise
        return stream

    async def ask(
        self, method: str, url: str, *, max_bytes: int, timeout_s: float, body: bytes = b""
    ) -> Any:
        """Ask for something small beside a completion, and return its JSON.

        Args:
            method: such as `GET`.
            url: where to.
            max_bytes: how long the answer may be.
            timeout_s: how long all of it may take.
            body: JSON to send.

        Raises:
            TimeoutError: it took longer.
            SixhopError: the provider cannot be reached or refuses, or its answer is no JSON.
        """
        exchange = Exchange(self._provider)
        async with asyncio.timeout(timeout_s):
            try:
                sent = await self._pool.send(
                    method,
                    url,
                    body=body,
                    headers={**self._key(), "Content-Type": JSON, "Accept": JSON},
                    connect_timeout_s=min(self._provider.connect_timeout_s, timeout_s),
                )
            except aiohttp.ClientError as error:
                raise fault(error, self._provider) from None
            stream = ByteStream(sent, self._provider)
            try:
                return await _read_json(stream, sent.response.status, exchange, max_bytes)
            finally:
                stream.abort()

    def _headers(self, call: Call) -> Mapping[str, str]:
        headers = {
            **self._key(),
            "Content-Type": JSON,
            "Accept": EVENT_STREAM,
            # Compression would hold tokens back until a block is full.
            "Accept-Encoding": "identity",
            DEADLINE_HEADER: str(int(call.attempt_timeout_s * 1000)),
        }
        if call.inbound.identity.request_id:
            headers[REQUEST_ID_HEADER] = call.inbound.identity.request_id
        return headers

    def _key(self) -> Mapping[str, str]:
        key = self._provider.api_key
        return {"Authorization": f"Bearer {key}"} if key else {}

    async def _check(
        self, response: aiohttp.ClientResponse, stream: ByteStream, exchange: Exchange
    ) -> None:
        if response.status == 200 and response.content_type == EVENT_STREAM:
            return
        body = await _bounded_body(stream)
        if response.status == 200:
            if _is_error(body):
                raise complained(exchange, body)
            said = exchange.quote(body.decode("utf-8", "replace"))
            raise protocol_error(
                "not_a_stream",
                f"the provider answered {response.content_type} and no event stream: {said}",
            )
        come_back_s = retry_after_s(response.headers.get("Retry-After", ""), self._clock.utc())
        raise refused(exchange, response.status, read_complaint(body), come_back_s)


def retry_after_s(value: str, now: datetime) -> float | None:
    """Return what a Retry-After header says: seconds or a date; None when it says neither."""
    if _SECONDS.fullmatch(value.strip()):
        wanted_s = float(value)
    else:
        try:
            at = parsedate_to_datetime(value)
        except ValueError:
            return None
        wanted_s = ((at if at.tzinfo else at.replace(tzinfo=UTC)) - now).total_seconds()
    return min(max(wanted_s, 0.0), MAX_RETRY_AFTER_S)


def _is_error(body: bytes) -> bool:
    """Tell whether a body is an error, although its status says that all is well."""
    try:
        said = orjson.loads(body)
    except orjson.JSONDecodeError:
        return False
    said = said[0] if isinstance(said, list) and said else said
    return isinstance(said, dict) and said.get("error") is not None


async def _read_json(stream: ByteStream, status: int, exchange: Exchange, max_bytes: int) -> Any:
    body = b""
    while chunk := await stream.read():
        body += chunk
        if len(body) > max_bytes:
            raise protocol_error(
                "too_long", f"the provider's answer has more than {max_bytes} bytes"
            )
    if status != 200:
        raise refused(exchange, status, read_complaint(bytes(body[:MAX_BODY_BYTES])))
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        raise protocol_error("bad_json", f"the provider sent {len(body)} bytes, no JSON") from None


async def _bounded_body(stream: ByteStream) -> bytes:
    body = b""
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            while len(body) < MAX_BODY_BYTES and (chunk := await stream.read()):
                body += chunk
    except (TimeoutError, SixhopError):
        return body
    return body


def _unread(content: aiohttp.StreamReader) -> bytes:
    # The reader gives up its buffer once the connection broke, and with it words, or even the
    # end of an answer, that had arrived. There is no public way to them.
    pieces = list(getattr(content, "_buffer", ()))
    return b"".join(pieces)
