"""Tells in one error what both models did, when neither wrote a text."""

from services.runtime.backup import DoesNotFitError
from services.runtime.errors import SixhopError
from services.runtime.status import MAX_MESSAGE_BYTES
from services.runtime.topology import MODEL_BACKUP

MAX_TOLD_BYTES = 200
"""What is told of the model that stands in; a status has room for a little more than twice that."""


def told_with_backup(error: SixhopError, backup: SixhopError | DoesNotFitError) -> SixhopError:
    """Return the first model's error, which then tells as well what the other did.

    Code, reason, cause and origin stay the first one's.

    Args:
        error: what the first model failed with.
        backup: what the model that stands in failed with, or why it was not asked.
    """
    if isinstance(backup, SixhopError):
        origin = backup.origin
        details = {
            "backupHop": origin.hop if origin else MODEL_BACKUP,
            "backupCode": (origin.code if origin else "") or backup.code.name,
            "backupReason": origin.reason if origin else backup.reason,
            "backupProblem": backup.message,
        }
        told = f"; {MODEL_BACKUP} failed as well: {_cut(backup.message, MAX_TOLD_BYTES)}"
    else:
        details = {"backupProblem": f"was not asked: {backup}"}
        told = f"; {MODEL_BACKUP} was not asked: {_cut(str(backup), MAX_TOLD_BYTES)}"
    # A long first part must not push the second one out of the status.
    error.retell(_cut(error.message, MAX_MESSAGE_BYTES - len(told.encode())) + told, details)
    return error


def _cut(text: str, most_bytes: int) -> str:
    """Return the beginning of a text, with a sign where its end is missing."""
    encoded = text.encode(errors="replace")
    if len(encoded) <= most_bytes:
        return text
    return encoded[: most_bytes - len("…".encode())].decode(errors="ignore") + "…"
