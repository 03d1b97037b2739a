"""Puts what one routing process has learned into bytes, and what others have into the board."""

import math
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from services.routing.board import HealthBoard
from services.routing.record import MAX_VIEW_AGE_S, DependencyView, PeerView, ReplicaRecord
from services.runtime.circuit import BreakerState

MAX_BYTES = 64 * 1024
"""A longer message is none of ours."""
MAX_PEERS = 64
"""Of so many other routing processes at most is anything kept."""
_MAX_KEYS = 64

Text = Annotated[str, Field(max_length=200)]
Age = Annotated[float, Field(ge=0, le=1e6)]


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class ReplicaMessage(_Message):
    """Is what a routing process has learned about one replica by itself."""

    log_slow: float = Field(ge=-20, le=20)
    """The logarithm of the slowdown that its ended runs show."""
    weight: float = Field(ge=0, le=1)
    """What that weighs, by its age."""
    hanging: float = Field(ge=0, le=1e6)
    """How far its runs under way are beyond what they usually take."""
    inflight: int = Field(ge=0, le=10**6)
    """Its runs under way there."""
    sick: Text = ""
    """Why it sends nothing there; empty when it does."""
    view_age_s: Age = 1e6
    """How long ago the replica told how it sees those that it calls."""
    breakers: dict[Text, BreakerState] = Field(default={}, max_length=_MAX_KEYS)
    mean_s: dict[Text, Age] = Field(default={}, max_length=_MAX_KEYS)


class PeerMessage(_Message):
    """Is what a routing process tells the others."""

    sequence: int
    """Counts its messages: the same one twice is no news."""
    replicas: dict[Text, ReplicaMessage] = Field(max_length=256)
    """By address."""


def told_by(board: HealthBoard, sequence: int, now: float) -> bytes:
    """Return what this process tells the others; only what it has learned itself."""
    replicas = {
        record.address: _told(record, now)
        for record in board.records.values()
        if math.isfinite(record.began_at) or record.polled is not None
    }
    return PeerMessage(sequence=sequence, replicas=replicas).model_dump_json().encode()


class Peers:
    """Keeps what others have told, and ages it by our own clock."""

    def __init__(self, board: HealthBoard) -> None:
        """Take the board that learns from it."""
        self._board = board
        self._seen: dict[str, tuple[int, float]] = {}
        """The last message of each: its number, and when it was first seen."""

    def take(self, messages: dict[str, bytes], now: float) -> None:
        """Take the messages that are there now, by the names of their senders.

        Who has none any more is forgotten. What is no message is passed over: it may come from a
        later release.
        """
        for name in self._seen.keys() - messages.keys():
            self._forget(name)
        for name, value in list(messages.items())[:MAX_PEERS]:
            message = _read(value)
            if message is None:
                continue
            number, told_at = self._seen.get(name, (-1, now))
            if number != message.sequence:
                told_at = now
            self._seen[name] = (message.sequence, told_at)
            self._apply(name, message, told_at)

    def _apply(self, name: str, message: PeerMessage, told_at: float) -> None:
        for address, told in message.replicas.items():
            record = self._board.records.get(address)
            if record is not None:
                record.peers[name] = PeerView(
                    told_at=told_at,
                    log_slow=told.log_slow,
                    weight=told.weight,
                    hanging=told.hanging,
                    inflight=told.inflight,
                    sick=told.sick,
                    view=DependencyView(
                        told_at=told_at - told.view_age_s,
                        breakers=told.breakers,
                        mean_s=told.mean_s,
                    ),
                )

    def _forget(self, name: str) -> None:
        del self._seen[name]
        for record in self._board.records.values():
            record.peers.pop(name, None)


def _told(record: ReplicaRecord, now: float) -> ReplicaMessage:
    log_slow, weight = record.evidence(now)
    view, view_age_s = record.view, now - record.view.told_at
    recent = view_age_s <= MAX_VIEW_AGE_S
    return ReplicaMessage(
        log_slow=min(max(log_slow, -20.0), 20.0),
        weight=weight,
        hanging=min(record.own_hanging(now), 1e6),
        inflight=record.inflight,
        sick=record.own_sickness(now)[:200],
        view_age_s=view_age_s if recent else 1e6,
        breakers=dict(list(view.breakers.items())[:_MAX_KEYS]) if recent else {},
        mean_s=dict(list(view.mean_s.items())[:_MAX_KEYS]) if recent else {},
    )


def _read(value: bytes) -> PeerMessage | None:
    if len(value) > MAX_BYTES:
        return None
    try:
        return PeerMessage.model_validate_json(value)
    except ValidationError:
        return None
