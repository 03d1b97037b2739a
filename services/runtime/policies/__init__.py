"""Holds the policies, one file each."""
