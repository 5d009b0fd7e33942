"""Quotas that change by the clock."""
