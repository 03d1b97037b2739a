"""Holds code generated from the protos of ``sixhop.domain``; generate.py writes it."""
