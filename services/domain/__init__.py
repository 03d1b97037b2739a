"""Holds the domain hop: agents that answer questions with tools and a model."""
