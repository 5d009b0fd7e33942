"""`mooring shadow`: what a shadow found out about a cluster."""
