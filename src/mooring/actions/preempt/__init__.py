"""Make room for a pod that no node takes, by evicting pods of lower priority: kube-scheduler's preemption, by columns.

`action.py` is the action, `search.py` one decision from beginning to end. What it reads: `running.py` (who runs where,
most important first) and `budgets.py` (whom a disruption budget protects). How it decides: `crowd.py` and
`reprieve.py` for all nodes at once, `what_if.py` node by node where filters count pods elsewhere, `choice.py` for the
cheapest node.
"""
