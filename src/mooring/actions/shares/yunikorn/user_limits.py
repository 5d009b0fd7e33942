"""What users and groups may have in queues, as YuniKorn limits them.

A limit of a user is for each user alone, a limit of a group for all its users together. `*` is for whoever no other
limit of the queue names. An application counts for one group: the first that a limit names of those that its user is
in, from its own queue upwards. A limit of a queue counts what is held in it and in all queues below.
"""

from collections import Counter

from mooring.actions.shares.checks import Refusal
from mooring.actions.shares.demands import UserLimit
from mooring.actions.shares.jobs import Job
from mooring.actions.shares.ledger import Ledger
from mooring.actions.shares.resources import Amount
from mooring.model.api.yunikorn_queues import ANYBODY

Account = tuple[str, str]
"""user or group, and the name."""
USER, GROUP = "user", "group"


class UserLimits:
    """What every user and group holds, where somebody limits it."""

    def __init__(self, ledger: Ledger) -> None:
        self._tree = ledger.tree
        self._limits: dict[int, dict[Account, UserLimit]] = {}
        for row, spec in enumerate(self._tree.specs):
            for limit in spec.applications.limits:
                named = [(USER, name) for name in limit.users] + [(GROUP, name) for name in limit.groups]
                self._limits.setdefault(row, {}).update(dict.fromkeys(named, limit))
        self._held: dict[tuple[Account, int], Counter[int]] = {}
        self._running: dict[tuple[Account, int], set[str]] = {}

    def change(self, job: Job, amount: Amount, sign: int, *, is_running: bool) -> None:
        """A job got so much, or lost it; whether its application holds anything now."""
        for account in self._accounts(job) if self._limits else ():
            for row in self._tree.paths[job.leaf]:
                held = self._held.setdefault((account, row), Counter())
                for column, value in amount.items():
                    held[column] += sign * value
                running = self._running.setdefault((account, row), set())
                (running.add if is_running else running.discard)(job.demand.application)

    def refuse(self, job: Job) -> Refusal | None:
        """Why the job's user, or group, may not have what the job wants next."""
        for account in self._accounts(job) if self._limits else ():
            for row in self._tree.paths[job.leaf]:
                limit = self._limit(account, row)
                refusal = None if limit is None else self._beyond(limit, account, row, job)
                if refusal is not None:
                    return refusal
        return None

    def _accounts(self, job: Job) -> list[Account]:
        found: list[Account] = [(USER, job.demand.user)]
        group = self._group(job)
        return [*found, (GROUP, group)] if group else found

    def _group(self, job: Job) -> str:
        for row in self._tree.paths[job.leaf]:
            limits = self._limits.get(row, {})
            named = [name for kind, name in limits if kind == GROUP and name in job.demand.groups]
            if named or (GROUP, ANYBODY) in limits:
                return named[0] if named else ANYBODY
        return ""

    def _limit(self, account: Account, row: int) -> UserLimit | None:
        limits = self._limits.get(row, {})
        found = limits.get(account)
        return limits.get((USER, ANYBODY)) if found is None and account[0] == USER else found

    def _beyond(self, limit: UserLimit, account: Account, row: int, job: Job) -> Refusal | None:
        queue, who, resources = self._tree.name(row), " ".join(account), self._tree.resources
        running = self._running.get((account, row), set())
        if limit.applications and job.demand.application not in running and len(running) >= limit.applications:
            return Refusal(queue, "", f"{who} runs as many applications in queue {queue} as it may")
        held = self._held.get((account, row), Counter[int]())
        for column, value in job.amount(job.wanted).items():
            name = resources.names[column]
            most = limit.amounts.get(name)
            if most is not None and held[column] + value > most:
                shown = [resources.show(column, amount) for amount in (most, held[column], value)]
                message = f"{who} may hold {shown[0]} {name} in queue {queue} and holds {shown[1]};"
                return Refusal(queue, name, f"{message} {shown[2]} more asked for")
        return None
