"""The descheduler's strategies on the real engine: a pod leaves only for a node that is held for its successor."""
