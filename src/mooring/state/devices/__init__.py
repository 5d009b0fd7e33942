"""What there is of devices on each row, and what is taken of them: one table, on the cluster's undo log.

`table.py` has the table: an inventory a row (`mooring.model.devices`), and who holds what of it. A row's inventory and
what is taken of it are interned together as one small integer, its *device state*: rows in the same state get the same
answer to the same question, and there are few states, because thousands of nodes have the same devices and fill up in
the same way. Whoever asks keeps answers by state.

`taking.py` says how pods come to hold devices: whoever gives out devices is a `DeviceTaker`. The cluster tells each of
them when a pod comes to a row or goes from it, also when somebody only tries that out, so that preemption, gangs and
rollback need to know nothing of devices. `claims.py` is the taker for claims of resource.k8s.io, `card_holders.py` that
for pods that ask for cards (cores and memory, MIG profiles). A GPU may be both, a device and a card: then `joined.py`
sees to it that nobody gets what somebody else has, whichever way they ask.
"""
