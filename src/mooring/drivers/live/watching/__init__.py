"""What there is on the cluster: listed, watched, and told to the scheduler."""
