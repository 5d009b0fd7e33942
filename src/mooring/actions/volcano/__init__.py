"""Share: which queue's turn it is, how much it may have, and who gives back, decided as Volcano decides it.

Read `sharing.py` first: the main flow, and what drivers call. Below it: `book.py` (what one change brings about),
`proportion.py` and `capacity.py` (what queues deserve), `checks.py` (who may have more), `order.py` (who comes first),
`reclaim.py` with `reclaim_rules.py` (who gives back), `dominant.py` and `hierarchical.py` (shares over many
resources), and at the bottom `tree.py` and `ledger.py`, the columns. `docs/fair-shares.md` explains the words.
"""
