"""The rules that a configuration must keep to be started with."""
