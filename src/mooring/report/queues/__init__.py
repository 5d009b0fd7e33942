"""How queues stand: quotas, shares, who holds, who waits and for what."""
