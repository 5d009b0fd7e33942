"""`mooring dashboard`: the pages over manifests, a snapshot or a cluster."""
