"""Holds the command line: one file per verb, and what the verbs share."""
