"""Holds code generated from the protos of ``sixhop.domain.v1``; generate.py writes it."""
