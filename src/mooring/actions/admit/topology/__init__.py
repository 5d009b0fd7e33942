"""Kueue's topology-aware scheduling: which domains of their flavors' topologies workloads get with their quota."""
