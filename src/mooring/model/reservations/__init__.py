"""Reservations as Koordinator has them: which pods may use which, and what room they have there."""
