"""Queues as YuniKorn has them: a tree from queues.yaml, applications in its leaves.

`fair_order.py` says which queue, and which application of a queue, comes first. `docs/fair-shares.md` explains the
words.
"""
