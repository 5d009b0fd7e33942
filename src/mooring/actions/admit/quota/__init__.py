"""Quotas as a tree of columns: what queues and cohorts have, lend, borrow and use."""
