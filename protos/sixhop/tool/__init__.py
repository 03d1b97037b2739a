"""Holds code generated from the protos of ``sixhop.tool``; generate.py writes it."""
