"""Holds the fuzzing of what reads bytes from strangers; `python -m tests.fuzz` runs it."""
