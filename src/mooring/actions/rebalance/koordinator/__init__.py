"""Koordinator's strategies as they are."""
