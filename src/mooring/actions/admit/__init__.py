"""Admit: which waiting workloads get quota, and who gives some back, decided as Kueue decides it.

Read `action.py` first, then `cycle/cycle.py`: one cycle of admission, in five steps. Around them, a room an idea:
`lifecycle/` (workloads on their way), `quota/` (what queues and cohorts have and use), `preemption/` (who gives back),
`topology/` (domains for flavors that have them), `policies/` and `windows/` (our own).
`docs/journey-of-a-queued-job.md` follows one job through them.
"""
