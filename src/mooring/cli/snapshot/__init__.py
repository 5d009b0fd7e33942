"""`mooring snapshot`: what is read of a cluster, as a file."""
