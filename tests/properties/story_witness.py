"""Follows a story by what the driver does and what the documents say, and complains."""

import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from plain_cluster import Json, PlainCluster, Share, gibibytes, members, milli
from story_worlds import Story

from mooring.drivers.offline.driver import Offline
from mooring.drivers.offline.reading import Inputs, Step, read
from mooring.model.decisions import Admit, Bind, Decision, Evict, Suspend, Wait
from mooring.model.events import PodLost, PodSeen
from mooring.model.keys import PodKey
from mooring.model.loading.manifests import collector_paused
from mooring.observe.progress import Progress
from mooring.report.gpus import gpu_maps
from mooring.state.pods import UNBOUND

MOST_EVICTIONS = 3
"""Of one pod at one moment: each time by a pod that is more urgent than the last."""
PATIENCE = 700.0
"""Seconds after which a gang that lost a member is whole again or released: its timeout, and a step."""


class Complaint(AssertionError):
    """What is wrong, and at which step."""


def tell(story: Story) -> "Witness":
    """Run a story to its end under the eyes of a witness."""
    with tempfile.TemporaryDirectory() as folder, collector_paused():
        files, config = story.write(Path(folder))
        then = tuple(Step(str(file), seconds) for file, (seconds, _) in zip(files[1:], story.steps[1:], strict=True))
        loaded = read(Inputs([str(files[0])], config=config, then=then), Progress())
    offline = loaded.begin()
    witness = Witness(offline)
    for number, (_, documents) in enumerate(story.steps):
        witness.step = number
        if number:
            loaded.let_happen(offline, number, Progress())
        witness.read(documents)
        offline.decide(Progress())
        witness.check()
    return witness


class Witness:
    def __init__(self, offline: Offline) -> None:
        self.offline = offline
        self.step = 0
        self.cluster = PlainCluster()
        self.decisions: list[Decision] = []
        self.over: set[str] = set()
        self.quotas: dict[tuple[str, str], Json] = {}
        self.evicted: Counter[str] = Counter()
        self.evicted_for: dict[str, str] = {}
        """By pod that has to run by the end of the step, the one that went for it."""
        self.disturbed: dict[str, float] = {}
        """By gang, when it lost a member to other hands than the scheduler's."""
        self.messages: dict[str, str] = {}
        """By pod, why it was said to wait."""
        self.admitted: set[str] = set()
        self.backing_off: set[str] = set()
        """Workloads whose pods did not start in time: they are let in again after a while, and later each time."""
        self.done: Counter[str] = Counter()
        self.moment = offline.now
        carry_out, handle = offline.carry_out, offline.scheduler.handle

        def watched_carry_out(decision: Decision) -> str:
            self._see_decision(decision)
            return carry_out(decision)

        def watched_handle(*events: Any) -> None:
            for event in events:
                self._see_event(event)
            handle(*events)

        offline.carry_out = watched_carry_out  # type: ignore[method-assign]
        offline.scheduler.handle = watched_handle  # type: ignore[method-assign]
        self._read_pods()

    def complain(self, what: str) -> None:
        raise Complaint(f"step {self.step}, {self.offline.now:.0f} s: {what}")

    # What is said.

    def read(self, documents: list[Json]) -> None:
        """Take in a step's documents, once it has happened."""
        for document in documents:
            metadata, kind = document["metadata"], document["kind"]
            name = metadata["name"]
            books = {"Node": self.cluster.nodes, "ResourceSlice": self.cluster.slices}
            if "deletionTimestamp" in metadata:
                books.get(kind, {}).pop(name, None)
            elif kind in books:
                books[kind][name] = document
            elif kind == "PodGroup":
                self.cluster.minimums[f"{metadata['namespace']}/{name}"] = document["spec"]["minMember"]
                self.quotas["PodGroup", f"{metadata['namespace']}/{name}"] = document
            elif kind in ("ClusterQueue", "Queue", "ElasticQuota") or kind == "Job":
                self.quotas[kind, name] = document
        self._read_pods()

    def _read_pods(self) -> None:
        """Pods as they are now; an infeasible resize leaves a pod as it was."""
        before, now = self.cluster.pods, {}
        for key, pod in self.offline.given.items():
            if key in self.over or pod.is_terminal:
                continue
            document = msgspec.to_builtins(pod)
            node = self.cluster.nodes.get(self.cluster.running.get(key, ""))
            if node is not None and key in before:
                asked = milli(document["spec"]["containers"][0]["resources"]["requests"]["cpu"])
                if asked > milli(node["status"]["allocatable"]["cpu"]):
                    document = before[key]
            now[str(key)] = document
        self.cluster.pods = now

    def _read_cards(self) -> None:
        self.cluster.cards = {
            found.node: {
                gpu.index: [
                    Share(f"{each.namespace}/{each.pod}", each.cores_percent, each.memory_mib, each.profile, each.start)
                    for each in gpu.shares
                    if not each.claim
                ]
                for gpu in found.gpus
            }
            for found in gpu_maps(self.offline.scheduler.cluster)
        }

    # What happens.

    def _see_event(self, event: Any) -> None:
        match event:
            case PodLost(key):
                self._leave(str(key), by_others=True)
            case PodSeen(pod) if pod.is_terminal:
                self.over.add(str(pod.key))
                self.done[self.offline.scheduler.cluster.tenants.workload_of.get(pod.key, "")] += 1
                self._leave(str(pod.key), by_others=True)
                self.cluster.pods.pop(str(pod.key), None)

    def _leave(self, key: str, *, by_others: bool) -> None:
        cluster = self.cluster
        self.evicted_for.pop(key, None)
        if cluster.running.pop(key, None) is not None and by_others and key in cluster.pods and cluster.gang(key):
            self.disturbed[cluster.gang(key)] = self.offline.now
        cluster.devices.pop(key, None)
        cluster.cpus.pop(key, None)

    def _see_decision(self, decision: Decision) -> None:
        self.decisions.append(decision)
        if self.offline.now != self.moment:
            self.moment = self.offline.now
            self.evicted.clear()
        match decision:
            case Bind():
                self._bind(decision)
            case Wait(pod, message):
                self.messages[pod] = message
            case Evict():
                self._evict(decision)
            case Admit(workload):
                self.admitted.add(workload)
                self._check_admission(workload)
            case Suspend(workload, reason):
                self.admitted.discard(workload)
                if reason == "PodsReadyTimeout":
                    self.backing_off.add(workload)

    def _bind(self, bind: Bind) -> None:
        key, node, cluster = bind.pod, bind.node, self.cluster
        if key not in cluster.pods:
            self._read_pods()
        if key in cluster.running:
            self.complain(f"{key} is bound to {node} and runs on {cluster.running[key]}")
        if node not in cluster.nodes or not cluster.is_open(key, node):
            self.complain(f"{key} is bound to {node}, which is closed to it")
        if not cluster.gang(key) and not cluster.keeps_its_distance(key, node):
            self.complain(f"{key} is bound to {node} against spread or affinity")
        self._check_limits(key)
        cluster.running[key] = node
        for preemptor in [found for found in self.evicted_for if cluster.priority(found) < cluster.priority(key)]:
            del self.evicted_for[preemptor]  # its room may have gone to a pod that is more urgent
        if cluster.overdrawn(node):
            self.complain(f"{key} is bound to {node}, which has not enough: {cluster.overdrawn(node)}")
        results = [
            result
            for claim in bind.claims
            if claim.allocation is not None
            for result in claim.allocation.devices.results or ()
        ]
        if results:
            cluster.devices[key] = [
                (f"{node}/{found.device}", gibibytes((found.consumed_capacity or {}).get("memory", "0Gi")))
                for found in results
            ]
        numa = dict(bind.annotations).get("mooring.dev/numa-allocation")
        if numa:
            cluster.cpus[key] = {
                cpu for found in json.loads(numa)["containers"].values() for cpu in _cpu_list(found["cpus"])
            }
        for wrong in cluster.wrong_with_devices():
            self.complain(f"{key} is bound to {node}: {wrong}")

    def _evict(self, evict: Evict) -> None:
        cluster, key = self.cluster, evict.pod
        if key not in cluster.running:
            self.complain(f"{key} is evicted and does not run")
        self.evicted[key] += 1
        if self.evicted[key] > MOST_EVICTIONS:
            self.complain(f"{key} is evicted {self.evicted[key]} times at one moment")
        preemptor = evict.preemptor
        is_plain = preemptor in cluster.pods and not self.family(preemptor) and not self.family(key)
        if is_plain:
            if cluster.priority(preemptor) <= cluster.priority(key):
                self.complain(
                    f"{key} ({cluster.priority(key)}) is evicted for {preemptor} ({cluster.priority(preemptor)})"
                )
            self.evicted_for[preemptor] = key
        self._leave(key, by_others=False)

    # Queues.

    def family(self, key: str) -> str:
        """Whose queue the pod is in."""
        cluster = self.cluster
        labels, annotations = cluster.labels(key), cluster.annotations(key)
        if key in self.offline.scheduler.cluster.tenants.workload_of:
            return "kueue"
        if "scheduling.k8s.io/group-name" in annotations:
            return "volcano"
        if "kai.scheduler/queue" in labels:
            return "kai"
        if "applicationId" in labels:
            return "yunikorn"
        if "quota.scheduling.koordinator.sh/name" in labels:
            return "koordinator"
        return "sig" if key.startswith("e/") and ("ElasticQuota", "eq") in self.quotas else ""

    def queue(self, key: str) -> str:
        labels = self.cluster.labels(key)
        match self.family(key):
            case "volcano":
                return str(self.quotas["PodGroup", self.cluster.gang(key)]["spec"]["queue"])
            case "kai":
                return str(labels["kai.scheduler/queue"])
            case "yunikorn":
                return str(labels["queue"])
            case "koordinator":
                return str(labels["quota.scheduling.koordinator.sh/name"])
            case "sig":
                return "eq"
        return ""

    def limit(self, family: str, queue: str) -> int | None:
        """Thousandths of a CPU that a queue may hold at most."""
        if family == "yunikorn":
            return 3000 if queue == "root.ytwo" else None
        kind = "ElasticQuota" if family in ("sig", "koordinator") else "Queue"
        spec = self.quotas[kind, queue]["spec"]
        match family:
            case "volcano":
                return milli(spec["capability"]["cpu"]) if "capability" in spec else None
            case "kai":
                found = int(spec["resources"]["cpu"]["limit"])
                return found if found >= 0 else None
        return milli(spec["max"]["cpu"])

    def used(self, family: str, queue: str) -> int:
        cluster = self.cluster
        there = [key for key in cluster.running if key in cluster.pods]
        return sum(cluster.cpu(key) for key in there if self.family(key) == family and self.queue(key) == queue)

    def _check_limits(self, key: str) -> None:
        family = self.family(key)
        if not family or family == "kueue":
            return
        queue = self.queue(key)
        limit = self.limit(family, queue)
        used = self.used(family, queue) + self.cluster.cpu(key)
        if limit is not None and used > limit:
            self.complain(f"{key} is bound, and queue {queue} of {family} holds {used} of {limit}")

    # Kueue.

    def _job(self, workload: str) -> Json:
        found = self.offline.scheduler.cluster.tenants
        pod = next(key for key, name in found.workload_of.items() if name == workload)
        name = str(pod).partition("/")[2].rpartition("-")[0]
        return self.quotas["Job", name]

    def _asked(self, workload: str) -> int:
        job = self._job(workload)
        left = int(job["spec"]["parallelism"]) - self.done[workload]
        return max(0, left) * milli(job["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"])

    def _nominal(self, queue: str) -> int:
        group = self.quotas["ClusterQueue", queue]["spec"]["resourceGroups"][0]
        return milli(group["flavors"][0]["resources"][0]["nominalQuota"])

    def _total(self) -> int:
        return sum(self._nominal(name) for kind, name in self.quotas if kind == "ClusterQueue")

    def _queue_of(self, workload: str) -> str:
        return str(self._job(workload)["metadata"]["labels"]["kueue.x-k8s.io/queue-name"])

    def _check_admission(self, workload: str) -> None:
        used = sum(map(self._asked, self.admitted))
        if used > self._total():
            self.complain(f"{workload} is admitted, and the cohort holds {used} of {self._total()}")

    def _check_workloads(self) -> None:
        tenants = self.offline.scheduler.cluster.tenants
        for workload in sorted(set(tenants.workload_of.values()) - self.admitted - self.backing_off):
            asked, queue = self._asked(workload), self._queue_of(workload)
            if not asked:
                continue
            priority = self._job(workload)["spec"]["template"]["spec"]["priority"]
            used = sum(map(self._asked, self.admitted))
            lower = [
                found
                for found in self.admitted
                if self._queue_of(found) == queue
                and self._job(found)["spec"]["template"]["spec"]["priority"] < priority
            ]
            if used + asked <= self._total():
                self.complain(f"{workload} waits for {asked} of quota, and {used} of {self._total()} is taken")
            preempts = self.quotas["ClusterQueue", queue]["spec"]["preemption"]["withinClusterQueue"] == "LowerPriority"
            preempts &= asked <= self._nominal(queue)  # what needs more than that borrows, and does not preempt
            if preempts and used - sum(map(self._asked, lower)) + asked <= self._total():
                self.complain(f"{workload} waits for {asked} of quota, and {lower} of its queue are less important")

    # How things stand when nothing is left to decide.

    def check(self) -> None:
        cluster, records = self.cluster, self.offline.scheduler.cluster.pods.records
        self._read_cards()
        ours = {str(key): record.node_name for key, record in records.items() if record.row != UNBOUND}
        if ours != cluster.running:
            differ = sorted(set(ours.items()) ^ set(cluster.running.items()))
            self.complain(f"the scheduler and the world differ on where pods run: {differ}")
        for wrong in (*cluster.wrong_with_devices(), *cluster.wrong_with_cards()):
            self.complain(wrong)
        for preemptor, victim in self.evicted_for.items():
            if preemptor in cluster.pods and preemptor not in cluster.running:
                self.complain(f"{victim} was evicted for {preemptor}, which does not run")
        self.evicted_for.clear()
        self._check_gangs()
        if self.quotas and any(kind == "ClusterQueue" for kind, _ in self.quotas):
            self._check_workloads()
        for key in [key for key in cluster.pods if key not in cluster.running]:
            if "room is kept" not in self.messages.get(key, ""):
                self._check_waits(key)

    def _check_gangs(self) -> None:
        cluster = self.cluster
        for gang, found in members(cluster, list(cluster.running)).items():
            over = sum(1 for key in self.over if self._was_member(key, gang))
            is_recent = self.offline.now - self.disturbed.get(gang, -PATIENCE) < PATIENCE
            if len(found) + over < cluster.minimum(gang) and not is_recent:
                self.complain(f"gang {gang} runs in part: {found}")

    def _was_member(self, key: str, gang: str) -> bool:
        return key.rpartition("-")[0] == gang

    def _check_waits(self, key: str) -> None:
        cluster, family = self.cluster, self.family(key)
        if family == "kueue" and self.offline.scheduler.cluster.tenants.workload_of[PodKey(key)] not in self.admitted:
            return
        if cluster.gang(key):
            if not family:
                self._check_gang_waits(cluster.gang(key))
            return
        if family not in ("", "kueue") and not self._may_have(key, family):
            return
        for node in cluster.nodes:
            if cluster.fits(key, node):
                self.complain(f"{key} waits and fits on {node}")
        if family in ("", "kueue") and cluster.pods[key]["spec"].get("preemptionPolicy") != "Never":
            for node in cluster.nodes:
                victims = frozenset(other for other in cluster.on(node) if self._is_less(other, cluster.priority(key)))
                if victims and cluster.fits(key, node, victims) and not self._spoils(key, victims):
                    self.complain(f"{key} waits and would fit on {node} without {sorted(victims)}")

    def _may_have(self, key: str, family: str) -> bool:
        """Whether its queue surely lets it run if there is room."""
        queue = self.queue(key)
        limit, used = self.limit(family, queue), self.used(family, queue) + self.cluster.cpu(key)
        if family == "sig":
            return used <= min(milli(self.quotas["ElasticQuota", queue]["spec"]["min"]["cpu"]), limit or 0)
        if family == "kai":
            return (limit is None or used <= limit) and self.cluster.priority(key) < 100
        return family == "yunikorn" and (limit is None or used <= limit)

    def _is_less(self, key: str, priority: int) -> bool:
        """Whether this pod may surely be evicted for one of that priority."""
        gang = self.cluster.gang(key)
        if self.family(key) in ("kai",):
            return False
        if not gang:
            return self.cluster.priority(key) < priority
        return all(
            self.cluster.priority(other) < priority for other in self.cluster.pods if self.cluster.gang(other) == gang
        )

    def _spoils(self, key: str, victims: frozenset[str]) -> bool:
        """Whether evictions elsewhere, of the rest of gangs, might change the answer."""
        return not self.cluster.is_simple(key) and any(self.cluster.gang(other) for other in victims)

    def _check_gang_waits(self, gang: str) -> None:
        cluster = self.cluster
        all_members = [key for key in cluster.pods if cluster.gang(key) == gang]
        one, minimum = all_members[0], cluster.minimum(gang)
        if gang in self.disturbed or any(key in cluster.running for key in all_members):
            return
        if len(all_members) < minimum or not cluster.is_simple(one):
            return
        if any(cluster.cpu(key) != cluster.cpu(one) for key in all_members):
            return
        if any(self._was_member(key, gang) for key in self.over):
            return
        if any(not cluster.keeps_its_distance(one, node) for node in cluster.nodes):
            return
        room = sum(cluster.capacity(one, node) for node in cluster.nodes)
        if room >= minimum:
            self.complain(f"gang {gang} waits and {minimum} of it fit")
        if cluster.pods[one]["spec"].get("preemptionPolicy") == "Never":
            return
        victims = frozenset(other for other in cluster.running if self._is_less(other, cluster.priority(one)))
        if victims and sum(cluster.capacity(one, node, victims) for node in cluster.nodes) >= minimum:
            self.complain(f"gang {gang} waits and {minimum} of it would fit without {sorted(victims)}")


def _cpu_list(text: str) -> Iterator[int]:
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)
