"""What nodes, pods and GPUs were measured to use, as values, and where that can be read from."""
