"""Holds our manifests to what a cluster would take, without one: a part of `make check`.

`validators.py` lists who looks at what. What users' manifests are held to as well is in
`gateway/manifests`, and is one of these.
"""
