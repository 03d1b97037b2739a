"""Holds code generated from the protos of ``sixhop.routing.v1``; generate.py writes it."""
