"""`mooring simulate`."""
