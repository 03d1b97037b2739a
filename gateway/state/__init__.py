"""Knows how every process of the suite does, for those who look."""
