"""Holds code generated from the protos of ``sixhop.routing``; generate.py writes it."""
