"""Decisions about Workloads, carried out: quota, and the jobs that have it."""
