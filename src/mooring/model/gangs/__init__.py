"""Gangs, whichever dialect declares them: what they are, who is in them."""
