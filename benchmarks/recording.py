"""Measures what it costs a gateway to keep its runs: each event, each run and each reader."""

import argparse
import asyncio
import gc
import itertools
import statistics
import time
import tracemalloc
from collections.abc import Callable
from contextlib import aclosing

from benchmarks.targets import Target
from gateway.config import RunsSettings
from gateway.http.run_answer import event_chunks
from gateway.runs.book import RunBook
from gateway.runs.event_json import ACCEPTED, FINISHED
from gateway.runs.reading import RunReader
from gateway.runs.run import Run
from services.runtime.call import Identity, Inbound
from services.runtime.clock import MonotonicClock
from sixhop.gateway.v1 import gateway_pb2
from sixhop.type.v1 import run_pb2

ROUNDS = 9
EVENTS = 2_000
CLOCK = MonotonicClock()
NAMES = itertools.count()
QUESTION = run_pb2.Question(text="What was the revenue by region?")
PER_EVENT = Target("CPU to keep one piece of text, µs", 2.0, at_least=False)
PER_RUN = Target("CPU to keep a run beside its events, µs", 100.0, at_least=False)
BYTES = Target("memory of one piece of text that is kept, bytes", 100.0, at_least=False)


def inbound() -> Inbound:
    """Return a call that has just come."""
    now = CLOCK.now()
    return Inbound("gateway", "Run", True, now, now + 60.0, Identity(run_id=f"{next(NAMES)}"))


def arriving() -> list[gateway_pb2.RunResponse]:
    """Return pieces of text as they come from the wire: each was parsed by itself."""
    event = run_pb2.RunEvent(text_delta=run_pb2.TextDelta(text=" token"))
    content = gateway_pb2.RunResponse(sequence=1, event=event).SerializeToString()
    return [gateway_pb2.RunResponse.FromString(content) for _ in range(EVENTS)]


def median_us(work: Callable[[], int]) -> float:
    """Return the CPU of one of the things that the work does so many of, µs."""
    found = []
    for _ in range(ROUNDS):
        gc.collect()
        began = time.process_time()
        count = work()
        found.append(1e6 * (time.process_time() - began) / count)
    return statistics.median(found)


def event_us(book: RunBook) -> float:
    """Return what one event costs."""

    def work() -> int:
        call = inbound()
        book.begin(call, QUESTION, "")
        for response in responses:
            book.memory.take_text(call.kept, response.event.text_delta.text)
        book.after(call, None)
        return EVENTS

    responses = arriving()
    return median_us(work)


def untold_us() -> float:
    """Return what the same loop costs without a book, as far as its reading of the event."""

    def work() -> int:
        for response in responses:
            ignore(response.event)
        return EVENTS

    def ignore(event: run_pb2.RunEvent) -> None:
        pass

    responses = arriving()
    return median_us(work)


def run_us(book: RunBook) -> float:
    """Return what a run costs beside its events."""
    accepted = run_pb2.RunEvent(accepted=run_pb2.RunAccepted(run_id="r"))
    finished = run_pb2.RunEvent(finished=run_pb2.RunFinished(agent="chat", model="m"))

    def work() -> int:
        for _ in range(EVENTS):
            call = inbound()
            book.begin(call, QUESTION, "")
            book.memory.take(call.kept, ACCEPTED, accepted)
            book.memory.take(call.kept, FINISHED, finished)
            book.after(call, None)
        return EVENTS

    return median_us(work)


async def reader_us(book: RunBook) -> float:
    """Return what one event costs for one reader that has each as it comes."""
    reader, found = RunReader(book.memory, CLOCK), []
    for _ in range(ROUNDS):
        call, responses = inbound(), arriving()
        book.begin(call, QUESTION, "")
        run = call.kept
        if not isinstance(run, Run):
            raise TypeError("the book keeps no run")
        async with aclosing(event_chunks(run, 0, reader)) as chunks:
            began = time.process_time()
            for response in responses:
                book.memory.take_text(call.kept, response.event.text_delta.text)
                await anext(chunks)
            found.append(1e6 * (time.process_time() - began) / EVENTS)
        book.after(call, None)
    return statistics.median(found)


def event_bytes(book: RunBook) -> float:
    """Return what one piece of text takes that is kept."""
    call, responses = inbound(), arriving()
    book.begin(call, QUESTION, "")
    gc.collect()
    tracemalloc.start()
    for response in responses:
        book.memory.take_text(call.kept, response.event.text_delta.text)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return taken / EVENTS


def main() -> int:
    """Measure, and judge by the targets; return the exit code."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    book = RunBook("gateway-1", RunsSettings(), CLOCK)
    bare_us, told_us = untold_us(), event_us(book)
    verdicts = [
        PER_EVENT.judge(told_us - bare_us, ""),
        PER_RUN.judge(run_us(book), ""),
        BYTES.judge(event_bytes(book), ""),
    ]
    for _, line in verdicts:
        print(line)
    print(f"one reader, µs CPU for each event: {asyncio.run(reader_us(book)):.2f}")
    return 0 if all(kept for kept, _ in verdicts) else 1


if __name__ == "__main__":
    raise SystemExit(main())
