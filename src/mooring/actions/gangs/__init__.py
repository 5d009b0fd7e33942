"""Gangs: placed whole or not at all, by topology where they ask for it, and kept whole."""
