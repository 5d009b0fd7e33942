"""Volcano's queues."""
