"""KAI's actions that bind, move and evict: allocate, consolidation, reclaim and preempt, decided on plain values."""
