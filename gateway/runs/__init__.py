"""Keeps the recent runs of the gateway, whichever door they came by."""
