"""Gangs near one another: domains of a topology, how much room each has, and which to take."""
