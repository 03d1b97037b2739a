"""Holds code generated from the protos of ``sixhop.runtime``; generate.py writes it."""
