"""Shares: which queue has the next turn, how much it may have, and which jobs give back.

One engine for the queues of Volcano, KAI and YuniKorn and for ElasticQuotas; what is one family's own is in its
package. Read `action.py` first, with `members.py` (which pods a turn is about), `following.py`, which tells
`sharing.py` what changed since the last cycle, and `let_in.py` (groups that have no pods yet); then `sharing.py`: the
main flow of deciding on amounts. Below it: `cache.py` (what one change brings about), `jobs.py` (what a job wants
next), `checks.py` (may a queue have more), `order.py` (which queue and job comes first), `reclaim.py` with
`reclaim_victims.py` and `reclaim_rules.py` (which jobs give back), `drf.py` and `hdrf.py` (shares over many resources),
and at the bottom `tree.py` and `ledger.py`, the columns. `docs/fair-shares.md` explains the words.
"""
