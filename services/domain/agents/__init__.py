"""Holds the agents, one file each."""
