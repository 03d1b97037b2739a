"""Holds code generated from the protos of ``sixhop.gateway.v1``; generate.py writes it."""
