"""Simulated nodes: they register, renew their leases, and let pods live as `model/kubelet` says."""
