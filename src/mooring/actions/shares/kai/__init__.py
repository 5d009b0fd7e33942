"""Queues as KAI has them (`scheduling.run.ai`): quota, over-quota weight, limit, priority and past use.

`division.py` says what a fair share is, `tree_shares.py` of a whole tree; `order.py` whose turn it is.
`docs/fair-shares.md` explains the words.
"""
