"""The Cluster Autoscaler: node groups grow for pods that wait, and shrink where nodes are not needed."""
