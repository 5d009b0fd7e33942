"""Make room for whoever no node takes, by evicting pods of lower priority: kube-scheduler's preemption, by columns.

`action.py` is the action; `engine/follow_up.py` binds the pods when their room is there; `resumed.py` goes on with what
was begun before a restart. `search.py` is one decision for a pod from beginning to end, `gang_search.py` for a gang.

What they read: `running.py` (who runs where, most important first), `state/budgets.py` (what budgets allow),
`gang_units.py` (who goes only with their gang) and `cost.py` (what a policy says it may cost).

How a pod's victims are found: `crowd.py` and `reprieve.py` for all nodes at once, `what_if.py` node by node where only
trying tells, `whole_gangs.py` where nobody by itself is enough, `choice.py` for the cheapest node.

How a gang's are: `pool.py` has everybody who might go, `gang_proposals.py` says who would be enough, by
`gang_choice.py` and `gang_spare.py`, and what it proposes is tried in earnest.
"""
