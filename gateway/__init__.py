"""Holds the gateway hop: the front door, and the command line."""
