"""Holds the embedded language model: its settings, its weights and its launcher."""
