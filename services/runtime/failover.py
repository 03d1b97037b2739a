"""Generates text by the first model, and by the one that stands in when the first cannot.

The first model has `min(first_content_timeout_s, share · r)` for its first content; its own call
holds it to that. What ends it ends it everywhere before the other is asked, which gets what is left
of the time and as much of the conversation as it can read in it. The other is asked at once when
the first model's breaker is open, when no permit is free, or when whoever routed the run knew that
the first would be late.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace

from services.runtime.background import background
from services.runtime.backup import Backup
from services.runtime.circuit import BreakerSnapshot, BreakerState
from services.runtime.compression.compressor import Compressor
from services.runtime.conversation import Message
from services.runtime.failover_stream import ANY_TERMS, Ask, FailoverStream, Models, Terms
from services.runtime.generation import Generation, ModelClient, TextStream, Wait, whole
from services.runtime.generation_options import NO_OPTIONS, GenerationOptions
from services.runtime.process import Hop
from services.runtime.topology import MODEL, MODEL_BACKUP


class Failover:
    """Writes texts with two models. Where there is only one, it is that one and nothing else."""

    def __init__(self, models: Models) -> None:
        """Take the models."""
        self._models = models

    def stream(
        self,
        messages: Sequence[Message],
        *,
        options: GenerationOptions = NO_OPTIONS,
        on_wait: Callable[[Wait], None] | None = None,
        terms: Terms = ANY_TERMS,
    ) -> AbstractAsyncContextManager[TextStream]:
        """Return a generation to iterate over; leaving the block ends it everywhere.

        Args:
            messages: the conversation, oldest first.
            options: how the text is to be generated.
            on_wait: is told now and then while a model hop waits for its provider.
            terms: what whoever asks knows and allows.
        """
        models = self._models
        rules = models.rules
        if models.backup is None or rules is None:
            return models.primary.stream(messages, options=options, on_wait=on_wait)
        ask = Ask(messages=messages, options=options, on_wait=on_wait)
        return _closed(FailoverStream(models, models.backup, rules, ask, terms))

    async def generate(
        self,
        messages: Sequence[Message],
        *,
        max_output_tokens: int = 0,
        terms: Terms = ANY_TERMS,
    ) -> Generation:
        """Return a whole generation; at most so many tokens, 0 leaves it to the model hop.

        Nobody sees a part of it, so that a model that fails in the middle is replaced as well.

        Raises:
            SixhopError: neither model wrote a whole text; it is the first one's error, and tells
                what the other did.
        """
        options = GenerationOptions(max_output_tokens=max_output_tokens)
        return await whole(self.stream(messages, options=options, terms=terms))


@asynccontextmanager
async def _closed(stream: FailoverStream) -> AsyncIterator[TextStream]:
    try:
        yield stream
    finally:
        await stream.close()


@asynccontextmanager
async def open_failover(hop: Hop) -> AsyncIterator[Failover]:
    """Open the ways from a hop to the model, and to the one that stands in where there is one.

    While the block runs, the second is asked now and then what it can.
    """
    async with hop.dependency(MODEL) as dependency:
        primary = ModelClient(dependency)
        policies = hop.policies
        rules = policies.fallback.backup if policies is not None else None
        if policies is None or rules is None or not hop.config.runs(MODEL_BACKUP):
            yield Failover(Models(primary, None, hop.clock))
            return
        # Nobody waits for a permit who can have another model's answer meanwhile.
        callee = replace(dependency.outgoing.callee, has_stand_in=True)
        dependency.outgoing.callee = callee

        def seen() -> BreakerSnapshot | None:
            found = policies.breakers.snapshot().get(callee.key)
            if found is None or found.state is BreakerState.CLOSED:
                return found
            # Breakers that only look on let everything pass, whatever they see.
            return None if policies.breakers.closed(callee.key) else found

        compressor = Compressor(hop.clock)
        try:
            async with hop.dependency(MODEL_BACKUP) as second:
                backup = Backup(ModelClient(second), compressor, hop.clock)
                models = Models(primary, backup, hop.clock, policies.fallback, callee.key, seen)
                async with background(backup.learn_forever(hop.name, rules)):
                    yield Failover(models)
        finally:
            compressor.close()
