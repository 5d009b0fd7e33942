"""Several active schedulers on the same nodes."""
