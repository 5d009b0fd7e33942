"""Who launches and terminates nodes on a real cluster."""
