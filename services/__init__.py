"""Holds the services of sixhop, one package per hop."""
