"""Policies of our own beside Kueue's, each off unless it is set."""
