"""Holds code generated from the protos of ``sixhop.tool.v1``; generate.py writes it."""
