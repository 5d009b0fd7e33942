"""Workloads on their way: from pending to admitted, from admitted to running, and back; the conditions they show."""
