"""Where load comes from: files in the forms of metrics.k8s.io, Koordinator, load-watcher and DCGM exporter."""
