"""`mooring explain`."""
