"""`mooring bench`."""
