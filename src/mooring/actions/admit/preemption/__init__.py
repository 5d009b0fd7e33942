"""Preemption targets among workloads that hold quota, classical and by fair share."""
