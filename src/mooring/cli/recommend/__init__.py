"""`mooring queues`."""
