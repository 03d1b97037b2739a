"""Holds the bulkhead to its limits under every order of arrivals, ends, cancels and timeouts."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from services.runtime.call import Group
from services.runtime.errors import BulkheadFullError
from services.runtime.policies.bulkhead import Bulkhead
from tests.unit.runtime.fake_time import LoopClock, run_in_fake_time
from tests.unit.runtime.policies.bulkheads import SHARED, attempt, settle

LIMITS = {"tool/a": 1, "tool/b": 3, "model": None}
CONFIG = replace(SHARED, lone_after_s=0.5)

Action = tuple[str, int]
ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["arrive", "arrive", "arrive", "end", "cancel", "pass", "turn", "both"]),
        # Small numbers meet: the same tenant calls the same tool while it is called.
        st.integers(0, 11) | st.just(0),
    ),
    max_size=60,
)


@dataclass(slots=True)
class Play:
    """Holds the calls of one play of a script."""

    bulkhead: Bulkhead
    clock: LoopClock
    running: list[tuple["asyncio.Task[str]", asyncio.Event]] = field(default_factory=list)

    async def do(self, action: str, number: int) -> None:
        """Do one step of the script."""
        if action == "arrive":
            ended = asyncio.Event()
            self.running.append((asyncio.create_task(self._call(number, ended)), ended))
        elif action == "pass":
            await self.clock.sleep(0.05 * number)
        elif action == "turn":
            await asyncio.sleep(0)
        elif self.running:
            task, ended = self.running[number % len(self.running)]
            if action in {"end", "both"}:
                ended.set()
            if action in {"cancel", "both"}:
                # After an end in the same turn: whoever was served by it may be cancelled, too.
                self.running[-1 - number % len(self.running)][0].cancel()
                task.cancel()

    async def _call(self, number: int, ended: asyncio.Event) -> str:
        key = list(LIMITS)[number % 3]
        call = attempt(self.clock, key=key, limit=LIMITS[key], tenant="xyz"[number // 4])
        try:
            async with self.bulkhead(call):
                await ended.wait()
        except BulkheadFullError as error:
            return error.cause
        return "served"

    def check(self) -> None:
        """Compare what is in use with what may be."""
        seen = self.bulkhead.snapshot().groups[Group.CORE]
        assert 0 <= seen.inflight <= seen.peak_inflight <= seen.permits
        assert 0 <= seen.queued <= seen.max_queued + seen.permits
        assert sum(seen.callees.values()) == sum(seen.tenants.values()) == seen.inflight
        for key, limit in LIMITS.items():
            assert 0 <= seen.callees.get(key, 0) <= (limit or seen.permits)
        assert all(0 <= used <= 3 for used in seen.tenants.values())
        # Shares are counted by it; nothing else tells when it drifts.
        assert self.bulkhead._permits[Group.CORE]._active == len(seen.tenants)


async def play(script: Sequence[Action]) -> None:
    """Play a script, then let everything end, and take all permits once more."""
    stage = Play(Bulkhead(CONFIG, LoopClock()), LoopClock())
    for action, number in script:
        await stage.do(action, number)
        stage.check()
    for _, ended in stage.running:
        ended.set()
    ends = await asyncio.gather(*(task for task, _ in stage.running), return_exceptions=True)
    # Served, refused or cancelled, and nothing else.
    assert all(isinstance(end, str | asyncio.CancelledError) for end in ends), ends
    await settle()
    stage.check()
    seen = stage.bulkhead.snapshot().groups[Group.CORE]
    assert (seen.inflight, seen.queued, seen.tenants) == (0, 0, {})
    for number in range(4):
        await stage.bulkhead(attempt(stage.clock, tenant="xy"[number % 2])).__aenter__()
    assert stage.bulkhead.snapshot().groups[Group.CORE].inflight == 4


@given(ACTIONS)
@settings(deadline=None, max_examples=150)
def test_permits_in_use_stay_within_their_limits_and_all_come_back(
    script: Sequence[Action],
) -> None:
    run_in_fake_time(play(script))
