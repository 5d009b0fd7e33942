"""Right-sizing: what pods should have, on which nodes that fits, and which pods get it in place."""
