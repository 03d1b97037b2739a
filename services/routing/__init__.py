"""Holds the routing hop: chooses the agent and forwards the run."""
