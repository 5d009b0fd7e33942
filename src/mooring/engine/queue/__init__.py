"""Who waits: to be tried now, backing off, parked, behind a gate, or for the rest of a gang."""
