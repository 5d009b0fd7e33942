"""The embedded control plane: a Kubernetes API server in one process, with simulated nodes."""
