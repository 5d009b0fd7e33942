"""A Kubernetes API as the world: lists and watches in, bindings, evictions and conditions out."""
