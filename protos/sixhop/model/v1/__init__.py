"""Holds code generated from the protos of ``sixhop.model.v1``; generate.py writes it."""
