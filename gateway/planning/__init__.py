"""Holds the arithmetic of how large a suite has to be for its traffic."""
