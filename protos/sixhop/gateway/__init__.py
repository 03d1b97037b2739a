"""Holds code generated from the protos of ``sixhop.gateway``; generate.py writes it."""
