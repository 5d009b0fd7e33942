"""The descheduler's strategies as they are: which pods one cycle of it evicts, without knowing where they will go."""
