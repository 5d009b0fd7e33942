"""`mooring rebalance`."""
