"""What Kubernetes calls things: typed objects, quantities, selectors, defaults, manifests, events, decisions."""
