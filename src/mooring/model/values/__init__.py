"""What fields hold, exactly as Kubernetes reads it: quantities, durations, selectors, tolerations, requests."""
