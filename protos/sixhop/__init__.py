"""Holds code generated from the protos of ``sixhop``; generate.py writes it."""
