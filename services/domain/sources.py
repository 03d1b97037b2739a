"""Defines the data that a question brings along."""

import hashlib
from dataclasses import dataclass
from functools import cached_property


# Without slots: the digest of a file is kept beside it.
@dataclass(frozen=True)
class DataSource:
    """Names one table of data; without content it is one of the tool hop's own."""

    name: str
    content: bytes = b""

    @cached_property
    def digest(self) -> str:
        """Return a digest of the content, made once; a mebibyte takes two milliseconds."""
        return hashlib.sha256(self.content).hexdigest()
