"""Pods that run are moved to where they are better placed."""
