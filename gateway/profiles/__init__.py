"""Configurations that ship with the suite; `--config NAME` takes one of them."""
