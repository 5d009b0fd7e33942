"""The cluster as columns: the only room that changes."""
