"""Judges what was measured by what was promised."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """Holds one promise."""

    what: str
    limit: float
    at_least: bool
    """True when more is better."""

    def judge(self, value: float, unit: str) -> tuple[bool, str]:
        """Return whether the value keeps the promise, and a line that says so."""
        kept = value >= self.limit if self.at_least else value <= self.limit
        sign = "≥" if self.at_least else "≤"
        verdict = "PASS" if kept else "FAIL"
        return kept, f"{verdict}  {self.what}: {value:.2f}{unit} ({sign} {self.limit:g}{unit})"
