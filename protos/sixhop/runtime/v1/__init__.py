"""Holds code generated from the protos of ``sixhop.runtime.v1``; generate.py writes it."""
