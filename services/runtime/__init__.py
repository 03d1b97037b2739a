"""Holds what every hop needs, once."""
