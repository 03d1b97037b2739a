"""Holds the model hop: prompts in, a stream of generated text out."""
