"""Knows who may come in and counts what they use: keys, tokens, a meter that gateways share."""
