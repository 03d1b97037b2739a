"""Holds one file per tool, each of which exports `TOOL`."""
