"""Capacity: which nodes to open and close."""
