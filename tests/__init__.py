"""Holds the tests; a folder says what a test may use."""
