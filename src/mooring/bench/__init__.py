"""Experiments and measurements: how good policies are, and what they cost. Nothing else imports them."""
