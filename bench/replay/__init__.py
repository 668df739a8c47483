"""Recorded typing sessions and how they were made."""
