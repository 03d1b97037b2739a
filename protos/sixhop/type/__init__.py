"""Holds code generated from the protos of ``sixhop.type``; generate.py writes it."""
