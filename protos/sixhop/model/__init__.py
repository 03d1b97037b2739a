"""Holds code generated from the protos of ``sixhop.model``; generate.py writes it."""
