"""Measured usage of containers over time, as columns."""
