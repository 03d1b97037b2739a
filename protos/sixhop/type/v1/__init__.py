"""Holds code generated from the protos of ``sixhop.type.v1``; generate.py writes it."""
