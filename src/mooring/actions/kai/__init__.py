"""Queues as KAI has them (`scheduling.run.ai`): quota, over-quota weight, limit, priority and past use.

`division.py` says what each queue's fair share is. `docs/fair-shares.md` explains the words.
"""
