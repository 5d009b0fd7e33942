"""`mooring schedule`."""
