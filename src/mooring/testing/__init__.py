"""Shipped for people's own tests: builders, checks for plugins, conformance runners, workloads to measure with."""
