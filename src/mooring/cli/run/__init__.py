"""`mooring run`."""
