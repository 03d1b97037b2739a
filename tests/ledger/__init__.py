"""Holds the promises by subject, so that no file of them grows too long."""
