"""Holds the shipped backends, one file each; a file exports `BACKEND`."""
