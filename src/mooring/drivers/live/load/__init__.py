"""Sources of load that a running scheduler reads: metrics.k8s.io, Prometheus, NodeMetric, DCGM exporters."""
