"""Priorities as queues of YuniKorn's shift them, or fence them off.

A queue adds its offset to the priority of what is in it, or has its offset for a priority if it is a fence. So what is
important in one queue need not be so in another's eyes.
"""

from mooring.actions.shares.demands import ApplicationRules
from mooring.actions.shares.jobs import Job
from mooring.actions.shares.tree import QueueTree


def seen_from_outside(rules: ApplicationRules, priority: int) -> int:
    """The priority of something in a queue, as the queues beside it see it."""
    return rules.priority_offset if rules.fences_priority else priority + rules.priority_offset


def may_be_evicted_for(tree: QueueTree, reclaimer: Job, victim: Job) -> bool:
    """Whether a job is no more important than the one that would take from it, as the queues between them see it."""
    mine, theirs = tree.ways_apart(reclaimer.leaf, victim.leaf)
    priority = reclaimer.demand.priority
    for row in (*mine, tree.parent[mine[-1]]):
        priority = seen_from_outside(tree.specs[row].applications, priority)
    is_fenced = False
    for row in reversed(theirs):
        rules = tree.specs[row].applications
        if not rules.fences_priority:
            priority -= rules.priority_offset
        elif rules.priority_offset > priority:
            return False
        else:
            is_fenced = True
    return is_fenced or victim.demand.priority <= priority
