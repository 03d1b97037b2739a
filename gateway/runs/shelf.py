"""Puts together what keeps the runs of a gateway."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from gateway.config import RunsSettings
from gateway.runs.book import RunBook
from gateway.runs.reading import RunReader
from gateway.runs.redis_store import RedisRuns
from gateway.runs.sharing import Outbox
from services.runtime.background import background
from services.runtime.process import Hop


@dataclass(frozen=True, slots=True)
class Shelf:
    """Is where runs are taken in, where they are found, and how they are shared."""

    book: RunBook
    reader: RunReader
    outbox: Outbox | None

    @asynccontextmanager
    async def keeping(self) -> AsyncIterator[None]:
        """Let go of what is too old, and share what is new, while the block runs."""
        async with AsyncExitStack() as stack:
            if self.outbox is not None:
                await stack.enter_async_context(self.outbox.writing())
            await stack.enter_async_context(background(self.book.tidy_forever()))
            yield


def open_shelf(hop: Hop, settings: RunsSettings) -> Shelf:
    """Return what keeps runs as the settings want it."""
    if not settings.redis_url.get_secret_value():
        book = RunBook(hop.pod, settings, hop.clock)
        return Shelf(book, RunReader(book.memory, hop.clock), None)
    store = RedisRuns(settings, hop.clock)
    outbox = Outbox(store, hop.clock)
    book = RunBook(hop.pod, settings, hop.clock, outbox.put)
    return Shelf(book, RunReader(book.memory, hop.clock, store), outbox)
