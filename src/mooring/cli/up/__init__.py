"""`mooring up`."""
