"""Colocation as Koordinator has it: which pods may be slowed down or moved for the sake of which others."""
