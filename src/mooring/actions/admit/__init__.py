"""Admit: which waiting workloads get quota, and who gives some back, decided as Kueue decides it.

Read `cycle.py` first: the main flow, and what drivers call. Below it, from the outside in: `nomination.py` (what would
be done for one workload), `order.py` and `turns.py` (who comes first, and what is left for the next), `flavors.py`,
`preemption.py`, `fair_preemption.py`, `pending.py`, and at the bottom `ledger.py` and `quota.py`, the only state.
Policies of our own: `own_rules.py` (within a cycle) and `window_keeping.py` (quotas that change by the clock).
"""
