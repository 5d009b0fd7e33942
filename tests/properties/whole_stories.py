"""Stories with everything in them, as documents: quotas of every family, gangs, preemption, permits, reservations, node
pools that have their pods back, quota windows, admission checks, topologies, devices, budgets, and refused decisions.

A story is drawn from a seed alone, so that it can be told twice.
"""

from collections.abc import Callable
from random import Random
from typing import Any

from mooring.assembly import Assembly, assemble
from mooring.config.settings import parse_settings
from mooring.drivers.offline.driver import Offline
from mooring.engine.action import Fault
from mooring.engine.cycle import Scheduler
from mooring.engine.plugin import Permit
from mooring.engine.verdict import Rejection, Wait
from mooring.errors import NoProgress
from mooring.model.decisions import Admit, Bind, Decision, Defer, Evict, Partition
from mooring.model.decisions import Wait as Waits
from mooring.model.loading.manifests import Manifests, build_manifests
from mooring.observe.progress import Progress

Json = dict[str, Any]
Told = tuple[float, Decision | str]
"""What was decided when, or which fault was reported."""
NOON = 1772452800.0
"""2026-03-02T12:00:00Z, a Monday."""
KUEUE = "kueue.x-k8s.io/v1beta2"
VOLCANO = "scheduling.volcano.sh/v1beta1"
CONFIG = "config.mooring.dev/v1alpha1"
STEPS = 5
FAMILIES = ("volcano", "kai", "elastic", "koordinator", "yunikorn")


class Slowly(Permit):
    """Lets pods wait in their places, or refuses them, as their labels say."""

    def permit(self, pod: Any, cluster: Any, row: int) -> Rejection | Wait | None:
        match (pod.pod.metadata.labels or {}).get("permit"):
            case "slow":
                return Wait(25.0, "not yet")
            case "never":
                return Rejection(("not here",))
        return None


# Configuration.


def assembled(chance: Random, families: list[str]) -> Assembly:
    pool = {"name": "own", "nodeLabels": {"pool": "own"}, "namespaces": ["team"], "movesBack": True}
    profile = {
        "plugins": {"multiPoint": {"enabled": [{"name": "NodePools", "weight": 100}]}},
        "pluginConfig": [
            {"name": "NodePools", "args": {"pools": [pool], "mostMovesAtATime": chance.choice((1, 2))}},
            {
                "name": "GangScheduling",
                "args": {"timeoutSeconds": 40, "reserveAfterSeconds": chance.choice((-1, 5, 30))},
            },
            {
                "name": "PreemptionCost",
                "args": {
                    "minimumRuntimeSeconds": chance.choice((0, 20)),
                    "mostPreemptionsPerWorkload": chance.choice((0, 1, 2)),
                    "windowSeconds": 60,
                    "leastWorkLost": chance.random() < 0.5,
                },
            },
        ],
    }
    scheduler = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "podMaxBackoffSeconds": chance.choice((1, 10)),
        "profiles": [profile],
    }
    documents = [scheduler, tenant_policy(chance), queueing(chance)]
    if "yunikorn" in families:
        documents.append(yunikorn())
    return assemble(parse_settings(documents, "story"), extra_plugins=[Slowly]).taking_on(["yunikorn"])


def tenant_policy(chance: Random) -> Json:
    policy: Json = {"apiVersion": CONFIG, "kind": "TenantPolicy", "holdFreedRoom": chance.random() < 0.5}
    policy["shares"] = {"division": chance.choice(("Proportion", "Capacity", "Weighted"))}
    policy["checkPlacement"] = chance.choice(("Never", "OnRequest", "Always"))
    policy["usageHalfLifeSeconds"] = chance.choice((0, 60))
    policy["minimumRuntimeBeforeReclaimSeconds"] = chance.choice((0, 20))
    if chance.random() < 0.6:
        window: Json = {"queue": "one", "resource": "cpu", "flavor": "plain", "from": "12:01", "to": "12:03"}
        window |= {"noticeSeconds": 20, "evict": chance.choice(("IfWanted", "Always"))}
        window[chance.choice(("nominalQuota", "lendingLimit"))] = chance.choice((0, 1, 9))
        policy["quotaWindows"] = [window]
    return policy


def queueing(chance: Random) -> Json:
    found: Json = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"}
    if chance.random() < 0.5:
        found["fairSharing"] = {}
    if chance.random() < 0.3:
        found["admissionFairSharing"] = {"usageHalfLifeTime": "60s", "usageSamplingInterval": "10s"}
    if chance.random() < 0.6:
        strategy = {"backoffBaseSeconds": 5, "backoffLimitCount": 2}
        ready: Json = {"timeout": "30s", "recoveryTimeout": "20s", "requeuingStrategy": strategy}
        found["waitForPodsReady"] = {**ready, "blockAdmission": chance.random() < 0.5}
    return found


def yunikorn() -> Json:
    queues = """
partitions:
  - name: default
    placementrules: [{name: provided}]
    queues:
      - name: root
        queues:
          - {name: x, resources: {guaranteed: {vcore: 2}}}
          - {name: y, maxapplications: 1, resources: {max: {vcore: 3}}}
"""
    metadata = {"name": "yunikorn-configs", "namespace": "yunikorn"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"queues.yaml": queues}}


# Objects.


def document(api: str, kind: str, name: str, namespace: str = "", **parts: Any) -> Json:
    metadata: Json = {"name": name} | ({"namespace": namespace} if namespace else {})
    metadata |= parts.pop("metadata", {})
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **parts}


class Drawing:
    """Draws the objects of one story."""

    def __init__(self, chance: Random, families: list[str]) -> None:
        self.chance = chance
        self.families = families
        self.count = 0

    def _name(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}-{self.count}"

    def first(self) -> list[Json]:
        nodes = [self.node(f"n{number}") for number in range(self.chance.randint(2, 4))]
        return [*nodes, *self.tenants(), *(found for family in self.families for found in self.queues(family))]

    def node(self, name: str) -> Json:
        chance = self.chance
        number = int(name[1:])
        labels = {"kubernetes.io/hostname": name, "rack": f"r{number % 2}", "zone": f"z{number % 2}"}
        labels["pool"] = "own" if number % 3 == 0 else "other"
        allocatable = {"cpu": chance.choice(("2", "4", "6")), "memory": "32Gi", "pods": "20"}
        if number == 1:
            labels |= {"nos.nebuly.com/gpu-partitioning": "mig", "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}
            labels["nvidia.com/gpu.memory"] = "81920"
            allocatable["nvidia.com/gpu"] = "1"
        spec: Json = {}
        if chance.random() < 0.15:
            spec["taints"] = [{"key": "broken", "effect": chance.choice(("NoSchedule", "NoExecute"))}]
        return document("v1", "Node", name, metadata={"labels": labels}, spec=spec, status={"allocatable": allocatable})

    def tenants(self) -> list[Json]:
        chance = self.chance
        checks = {"admissionChecks": [{"name": "budget"}]} if chance.random() < 0.4 else {"admissionChecks": []}
        preemption = {
            "withinClusterQueue": chance.choice(("LowerPriority", "Never")),
            "reclaimWithinCohort": chance.choice(("Any", "LowerPriority", "Never")),
        }
        found = [
            document(KUEUE, "Topology", "racks", spec={"levels": [{"nodeLabel": "rack"}]}),
            document(KUEUE, "ResourceFlavor", "plain"),
            document(
                KUEUE, "ResourceFlavor", "racked", spec={"nodeLabels": {"pool": "other"}, "topologyName": "racks"}
            ),
            document(KUEUE, "AdmissionCheck", "budget", spec={"controllerName": "example.com/budget"}),
        ]
        for queue, flavor in (("one", "plain"), ("two", "racked" if chance.random() < 0.5 else "plain")):
            quota = {"name": "cpu", "nominalQuota": chance.choice((2, 3, 5))}
            groups = [{"coveredResources": ["cpu"], "flavors": [{"name": flavor, "resources": [quota]}]}]
            spec = {"namespaceSelector": {}, "cohortName": "all", "preemption": preemption, "resourceGroups": groups}
            if queue == "two":
                spec["admissionChecksStrategy"] = checks
            found.append(document(KUEUE, "ClusterQueue", queue, spec=spec))
            found.append(document(KUEUE, "LocalQueue", queue, "team", spec={"clusterQueue": queue}))
        return found

    def queues(self, family: str) -> list[Json]:
        chance = self.chance
        match family:
            case "volcano":
                spec = {"weight": chance.randint(1, 3), "capability": {"cpu": chance.choice(("3", "8"))}}
                return [document(VOLCANO, "Queue", name, spec=spec) for name in ("va", "vb")]
            case "kai":
                free = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
                cpu = {"quota": chance.choice((1000, 2000)), "limit": -1, "overQuotaWeight": 1}
                spec = {"resources": {"cpu": cpu, "memory": free, "gpu": free}}
                return [document("scheduling.run.ai/v2", "Queue", name, spec=spec) for name in ("ka", "kb")]
            case "elastic":
                spec = {"min": {"cpu": "1"}, "max": {"cpu": chance.choice(("2", "4"))}}
                return [document("scheduling.x-k8s.io/v1alpha1", "ElasticQuota", "quota", "eq", spec=spec)]
            case "koordinator":
                spec = {"min": {"cpu": "1"}, "max": {"cpu": chance.choice(("2", "4"))}}
                labels = {"quota.scheduling.koordinator.sh/is-parent": "false"}
                api = "scheduling.sigs.k8s.io/v1alpha1"
                return [document(api, "ElasticQuota", "kq", "koord", metadata={"labels": labels}, spec=spec)]
        return []

    # What comes.

    def some(self) -> list[Json]:
        """Whatever comes next: pods, gangs, jobs, or something else about what is there."""
        kinds: list[Callable[[], list[Json]]] = [self.plain, self.plain, self.gang, self.job, self.budget, self.web]
        kinds += [self.instance, *(self.shared for _ in self.families)]
        return self.chance.choice(kinds)()

    def pod(self, name: str, namespace: str = "team", **parts: Any) -> Json:
        chance = self.chance
        requests = parts.pop("requests", {"cpu": chance.choice(("500m", "1", "2"))})
        container = {"name": "c", "image": "i", "resources": {"requests": requests, "limits": parts.pop("limits", {})}}
        spec: Json = {"containers": [container], "priority": chance.choice((0, 0, 5, 10)), **parts.pop("spec", {})}
        metadata: Json = parts.pop("metadata", {})
        metadata.setdefault("annotations", {})
        if chance.random() < 0.3:
            metadata["annotations"]["mooring.dev/duration"] = f"{chance.randint(5, 90)}s"
        return document("v1", "Pod", name, namespace, metadata=metadata, spec=spec)

    def plain(self) -> list[Json]:
        chance, spec, labels = self.chance, dict[str, Any](), {"app": "plain"}
        kind = chance.randint(0, 6)
        if kind == 0:
            labels["permit"] = chance.choice(("slow", "slow", "never"))
        elif kind == 1:
            selector = {"matchLabels": {"app": "plain"}}
            spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
            spec["topologySpreadConstraints"] = [{**spread, "labelSelector": selector}]
        elif kind == 2:
            term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "plain"}}}
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        elif kind == 3:
            spec["tolerations"] = [
                {"key": "broken", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 15}
            ]
        name = self._name("plain")
        return [self.pod(name, chance.choice(("team", "free")), metadata={"labels": labels}, spec=spec)]

    def web(self) -> list[Json]:
        """Pods that a controller would make again: they may be moved back."""
        name = self._name("web")
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": name, "controller": True}
        metadata = {"labels": {"app": "web"}, "ownerReferences": [owner]}
        return [self.pod(f"{name}-{index}", metadata=dict(metadata)) for index in range(2)]

    def instance(self) -> list[Json]:
        return [self.pod(self._name("mig"), limits={"nvidia.com/mig-1g.10gb": "1"}, requests={"cpu": "500m"})]

    def budget(self) -> list[Json]:
        app = self.chance.choice(("plain", "web"))
        spec = {"minAvailable": self.chance.randint(0, 2), "selector": {"matchLabels": {"app": app}}}
        return [document("policy/v1", "PodDisruptionBudget", app, "team", spec=spec)]

    def gang(self) -> list[Json]:
        chance, name, size = self.chance, self._name("gang"), self.chance.randint(2, 3)
        spec: Json = {"minMember": chance.randint(2, size)}
        if chance.random() < 0.5:
            spec["scheduleTimeoutSeconds"] = chance.choice((10, 40))
        group = document("scheduling.x-k8s.io/v1alpha1", "PodGroup", name, "free", spec=spec)
        permit = {"permit": "slow"} if chance.random() < 0.2 else {}
        labels = {"scheduling.x-k8s.io/pod-group": name, **permit}
        priority = chance.choice((0, 5, 10))
        pods = [
            self.pod(f"{name}-{index}", "free", metadata={"labels": labels}, spec={"priority": priority})
            for index in range(size)
        ]
        return [group, *pods]

    def job(self) -> list[Json]:
        chance, name = self.chance, self._name("job")
        queue, count = chance.choice(("one", "one", "two")), chance.randint(1, 3)
        template: Json = self.pod(name)["spec"] | {"restartPolicy": "Never", "priority": chance.choice((0, 5))}
        annotations = {"mooring.dev/duration": f"{chance.randint(20, 120)}s"} if chance.random() < 0.5 else {}
        if queue == "two" and chance.random() < 0.5:
            annotations["kueue.x-k8s.io/podset-preferred-topology"] = "rack"
        metadata: Json = {"labels": {"kueue.x-k8s.io/queue-name": queue}}
        if chance.random() < 0.3:
            metadata["annotations"] = {"mooring.dev/check-placement": "true"}
        spec: Json = {"parallelism": count, "completions": count}
        spec["template"] = {"metadata": {"annotations": annotations}, "spec": template}
        made = document("batch/v1", "Job", name, "team", metadata=metadata, spec=spec)
        if queue == "one" or chance.random() < 0.3:
            return [made]
        # What a controller of checks writes: the Workload with the state of the check.
        pod_set = {
            "name": "main",
            "count": count,
            "template": {"spec": template, "metadata": spec["template"]["metadata"]},
        }
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": name, "controller": True}
        state = chance.choice(("Ready", "Ready", "Pending", "Rejected"))
        status = {"admissionChecks": [{"name": "budget", "state": state, "message": ""}]}
        workload = document(
            KUEUE,
            "Workload",
            f"job-{name}",
            "team",
            metadata={"ownerReferences": [owner]},
            spec={"queueName": queue, "podSets": [pod_set]},
            status=status,
        )
        return [made, workload]

    def shared(self) -> list[Json]:
        chance = self.chance
        match chance.choice(self.families):
            case "volcano":
                return self._volcano()
            case "kai":
                labels = {"kai.scheduler/queue": chance.choice(("ka", "kb"))}
                return [self.pod(self._name("kai"), "free", metadata={"labels": labels})]
            case "elastic":
                return [self.pod(self._name("eq"), "eq")]
            case "koordinator":
                labels = {"quota.scheduling.koordinator.sh/name": "kq"}
                return [self.pod(self._name("kq"), "koord", metadata={"labels": labels})]
        labels = {"applicationId": f"app-{chance.randint(1, 3)}", "queue": chance.choice(("root.x", "root.y"))}
        return [self.pod(self._name("yk"), "free", metadata={"labels": labels}, spec={"schedulerName": "yunikorn"})]

    def _volcano(self) -> list[Json]:
        chance, queue = self.chance, self.chance.choice(("va", "vb"))
        if chance.random() < 0.5:
            annotations = {"scheduling.volcano.sh/queue-name": queue}
            return [self.pod(self._name("v"), "free", metadata={"annotations": annotations})]
        name, size = self._name("vg"), chance.randint(1, 3)
        spec = {"minMember": size, "queue": queue, "minResources": {"cpu": chance.choice(("1", "3"))}}
        phase = chance.choice(("Pending", "Inqueue"))
        group = document(VOLCANO, "PodGroup", name, "free", spec=spec, status={"phase": phase})
        annotations = {"scheduling.k8s.io/group-name": name}
        return [
            group,
            *(self.pod(f"{name}-{i}", "free", metadata={"annotations": dict(annotations)}) for i in range(size)),
        ]


def key_of(found: Json) -> tuple[str, str, str]:
    metadata = found["metadata"]
    return found["apiVersion"] + found["kind"], metadata.get("namespace", ""), metadata["name"]


class Story:
    """The pictures of a story, the seconds between them, and what it is told to."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def _draw(self) -> None:
        chance = Random(self.seed)
        families = [family for family in FAMILIES if chance.random() < 0.4]
        self.assembly = assembled(chance, families)
        drawing = Drawing(chance, families)
        known = {key_of(found): found for found in drawing.first()}
        self.pictures: list[Manifests] = []
        self.seconds: list[float] = []
        for _ in range(STEPS):
            for _ in range(chance.randint(1, 5)):
                known.update((key_of(found), found) for found in drawing.some())
            self._change(chance, drawing, known)
            self.pictures.append(build_manifests(list(known.values())))
            self.seconds.append(chance.choice((0.0, 1.0, 7.0, 20.0, 65.0, 320.0)))

    def _change(self, chance: Random, drawing: Drawing, known: dict[tuple[str, str, str], Json]) -> None:
        """Let pods and jobs be deleted, a permit be given, or a node change, come or go."""
        gone = [key for key, found in known.items() if found["kind"] in ("Pod", "Job", "PodGroup", "Workload")]
        for key in chance.sample(gone, min(len(gone), chance.randint(0, 2))):
            del known[key]
        slow = [key for key, found in known.items() if (found["metadata"].get("labels") or {}).get("permit") == "slow"]
        if slow and chance.random() < 0.5:
            key = chance.choice(slow)
            metadata = known[key]["metadata"]
            labels = {name: value for name, value in metadata["labels"].items() if name != "permit"}
            known[key] = {**known[key], "metadata": {**metadata, "labels": labels}}
        if chance.random() < 0.4:
            node = drawing.node(f"n{chance.randint(0, 4)}")
            known[key_of(node)] = node
        elif chance.random() < 0.2:
            nodes = [key for key, found in known.items() if found["kind"] == "Node"]
            if len(nodes) > 1:
                del known[chance.choice(nodes)]

    def tell(self, after_cycle: Callable[[Scheduler], None] = lambda scheduler: None) -> list[Told]:
        """Everything that is decided, and when; why pods wait is found out anew, and may be said again."""
        self._draw()  # each time: no object of one telling is seen in another
        scheduler = self.assembly.new_scheduler()
        scheduler.load(self.pictures[0], NOON)
        world = Refusing(scheduler, self.pictures[0], Random(self.seed), after_cycle)
        try:
            self._happen(world, Progress())
        except NoProgress as error:  # a story may end so, if it always does
            world.told.append((world.now, str(error)))
        return world.told

    def _happen(self, world: "Refusing", progress: Progress) -> None:
        world.decide(progress)
        for number in range(1, len(self.pictures)):
            world.pass_time(self.seconds[number], progress)
            world.change(self.pictures[number - 1], self.pictures[number])
            world.decide(progress)


class Refusing(Offline):
    """Refuses to do some of what is decided, and writes down what is."""

    def __init__(
        self, scheduler: Scheduler, manifests: Manifests, chance: Random, after_cycle: Callable[[Scheduler], None]
    ) -> None:
        self.chance = chance
        self.told: list[Told] = []
        self._after_cycle = after_cycle
        super().__init__(scheduler, NOON, manifests)

    def take_faults(self, faults: list[Fault]) -> None:
        """Go on: no fault of ours, but a pod for which room was made in vain too often."""
        for fault in faults:
            if not isinstance(fault.error, NoProgress):
                raise fault.error
        self.told += [(self.now, str(fault.error)) for fault in faults]

    def run_cycle(self, at_most: int) -> list[Decision]:
        decisions = super().run_cycle(at_most)
        self.told += [(self.now, found) for found in decisions if not isinstance(found, Waits | Defer)]
        self._after_cycle(self.scheduler)
        return decisions

    def step(self, at_most: int) -> tuple[list[Decision], bool]:
        decisions, is_due = super().step(at_most)
        return decisions, is_due or self.scheduler.has_news  # of what was refused

    def carry_out(self, decision: Decision) -> str:
        if isinstance(decision, Bind | Evict | Admit | Partition) and self.chance.random() < 0.05:
            return "refused"
        return super().carry_out(decision)
