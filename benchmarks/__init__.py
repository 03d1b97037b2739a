"""Measures the suite against its targets, side by side with plain gRPC."""
