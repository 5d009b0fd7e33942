"""Right-sizing as the Vertical Pod Autoscaler does it: policies, what pods get, and which pods to update."""
