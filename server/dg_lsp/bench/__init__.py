"""Benches that run from an installed package: recorded typing against the server, and holes."""
