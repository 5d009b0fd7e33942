"""Share: which queue's turn it is, how much it may have, and who gives back, decided as Volcano decides it.

Read `allocate.py` first, the action, with `members.py` (which pods a turn is about) and `following.py`, which tells
`sharing.py` what changed since the last cycle, and `enqueue.py` (groups that have no pods yet); then `sharing.py`: the
main flow of deciding on amounts. Below it: `book.py` (what one change brings about), `jobs.py` (what a job wants next),
`proportion.py` and `capacity.py` (what queues deserve), `checks.py` (who may have more), `order.py` (who comes first),
`reclaim.py` with `reclaim_victims.py` and `reclaim_rules.py` (who gives back), `drf.py` and `hdrf.py` (shares over many
resources), and at the bottom `tree.py` and `ledger.py`, the columns. `docs/fair-shares.md` explains the words.
"""
