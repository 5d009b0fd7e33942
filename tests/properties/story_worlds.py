"""Random stories in manifests: devices of every dialect, spread, affinity, quotas of every family, priorities, gangs.

A story is nothing but documents, so that one that goes wrong can be cut down, written to files and run by
`mooring schedule -f 0.yaml --then 60s:1.yaml`.
"""

import copy
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Json = dict[str, Any]
DRIVER = "gpu.example.com"
KINDS = ("plain", "plain", "counted", "counted", "hami", "koordinator", "mig", "numa", "whole", "parts", "amounts")
"""Of nodes: how they hand out what they have. The last three publish devices for claims."""
FAMILIES = ("kueue", "volcano", "kai", "yunikorn", "sig", "koordinator-quota")
PRIORITIES = (0, 0, 10, 100)
MIG = ("1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb")
TEMPLATES = ("whole", "two", "either", "half", "quarter", "few", "many")
GONE = "2026-01-01T00:00:00Z"


@dataclass
class Story:
    """What there is at first, and what happens after so many seconds each time."""

    steps: list[tuple[float, list[Json]]]
    config: list[Json] = field(default_factory=list)

    def write(self, folder: Path) -> tuple[list[Path], Path | None]:
        """The files of the steps, and that of the configuration."""
        files = []
        for number, (_, documents) in enumerate(self.steps):
            files.append(folder / f"{number}.yaml")
            files[-1].write_text("\n---\n".join(map(json.dumps, documents)))
        if not self.config:
            return files, None
        (folder / "config.yaml").write_text("\n---\n".join(map(json.dumps, self.config)))
        return files, folder / "config.yaml"


def make_story(seed: int) -> Story:
    return _Author(random.Random(seed)).story()


class _Author:
    """Draws one story."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.count = 0
        self.nodes: dict[str, list[Json]] = {}
        """By name, the Node first and then what it publishes."""
        self.pods: list[Json] = []
        """Those that may still be ended, deleted or resized."""
        self.quotas: list[Json] = []
        self.families = [found for found in FAMILIES if dice.random() < 0.3]
        self.kinds = dice.sample(sorted(set(KINDS)), dice.randint(1, 4))

    def story(self) -> Story:
        dice = self.dice
        first = [*self._classes(), *self._queues()]
        for _ in range(dice.randint(1, 4)):
            first += self._node()
        first += self._newcomers(dice.randint(1, 5))
        steps = [(0.0, first)]
        for _ in range(dice.randint(1, 5)):
            documents: list[Json] = []
            for _ in range(dice.choice((0, 1, 1, 2))):
                documents += dice.choice(self._happenings())()
            documents += self._newcomers(dice.randint(0, 4))
            steps.append((dice.choice((10.0, 60.0, 60.0, 400.0, 1200.0)), _last_of_each(documents)))
        return Story(steps, self._config())

    # What there is besides nodes and pods.

    def _classes(self) -> list[Json]:
        """Device classes, and templates of claims in every namespace."""
        found: list[Json] = []
        for kind in ("whole", "half", "quarter", "amount"):
            spec: Json = {"selectors": [{"cel": {"expression": f'device.attributes["{DRIVER}"].kind == "{kind}"'}}]}
            if kind == "whole" and self.dice.random() < 0.3:
                spec["extendedResourceName"] = "example.com/gpu"
            found.append(
                {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": kind}, "spec": spec}
            )

        def exactly(kind: str, **more: Any) -> Json:
            return {"name": "r", "exactly": {"deviceClassName": kind, **more}}

        either = [{"name": "a", "deviceClassName": "half"}, {"name": "b", "deviceClassName": "whole"}]
        requests = {
            "whole": exactly("whole"),
            "two": exactly("whole", count=2),
            "either": {"name": "r", "firstAvailable": either},
            "half": exactly("half"),
            "quarter": exactly("quarter"),
            "few": exactly("amount", capacity={"requests": {"memory": "2Gi"}}),
            "many": exactly("amount", capacity={"requests": {"memory": "5Gi"}}),
        }
        for namespace in ("a", "e", "q"):
            for name, request in requests.items():
                found.append(
                    {
                        "apiVersion": "resource.k8s.io/v1",
                        "kind": "ResourceClaimTemplate",
                        "metadata": {"name": name, "namespace": namespace},
                        "spec": {"spec": {"devices": {"requests": [request]}}},
                    }
                )
        return found

    def _queues(self) -> list[Json]:
        dice, found = self.dice, list[Json]()
        spec: Json
        if "kueue" in self.families:
            api = "kueue.x-k8s.io/v1beta1"
            found.append({"apiVersion": api, "kind": "ResourceFlavor", "metadata": {"name": "f"}})
            for name in ("one", "two"):
                spec = {
                    "namespaceSelector": {},
                    "cohort": "all",
                    "preemption": {
                        "withinClusterQueue": dice.choice(("LowerPriority", "Never")),
                        "reclaimWithinCohort": dice.choice(("Any", "Never")),
                    },
                    "resourceGroups": [
                        {
                            "coveredResources": ["cpu", "memory", "nvidia.com/gpu"],
                            "flavors": [
                                {
                                    "name": "f",
                                    "resources": [
                                        {"name": "cpu", "nominalQuota": dice.randint(2, 6)},
                                        {"name": "memory", "nominalQuota": "1Ti"},
                                        {"name": "nvidia.com/gpu", "nominalQuota": 100},
                                    ],
                                }
                            ],
                        }
                    ],
                }
                self.quotas.append(
                    {"apiVersion": api, "kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec}
                )
                local = {"name": name, "namespace": "a"}
                found.append(
                    {"apiVersion": api, "kind": "LocalQueue", "metadata": local, "spec": {"clusterQueue": name}}
                )
        if "volcano" in self.families:
            for name in ("vone", "vtwo"):
                spec = {"weight": dice.randint(1, 3)}
                if dice.random() < 0.4:
                    spec["capability"] = {"cpu": dice.randint(2, 6)}
                self.quotas.append(
                    {
                        "apiVersion": "scheduling.volcano.sh/v1beta1",
                        "kind": "Queue",
                        "metadata": {"name": name},
                        "spec": spec,
                    }
                )
        if "kai" in self.families:
            free = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
            for name, parent in (("kroot", ""), ("kone", "kroot"), ("ktwo", "kroot")):
                cpu = free if not parent else {**free, "quota": 1000 * dice.randint(0, 4)}
                if parent and dice.random() < 0.4:
                    cpu = {**cpu, "quota": 1000, "limit": 1000 * dice.randint(2, 6)}
                spec = {"resources": {"gpu": free, "cpu": cpu, "memory": free}} | (
                    {"parentQueue": parent} if parent else {}
                )
                self.quotas.append(
                    {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": name}, "spec": spec}
                )
        if "sig" in self.families:
            spec = {"min": {"cpu": str(dice.randint(1, 3))}, "max": {"cpu": str(dice.randint(3, 6))}}
            self.quotas.append(
                {
                    "apiVersion": "scheduling.x-k8s.io/v1alpha1",
                    "kind": "ElasticQuota",
                    "metadata": {"name": "eq", "namespace": "e"},
                    "spec": spec,
                }
            )
        if "koordinator-quota" in self.families:
            for name in ("qone", "qtwo"):
                spec = {"min": {"cpu": dice.randint(1, 3)}, "max": {"cpu": dice.randint(3, 6)}}
                self.quotas.append(
                    {
                        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1",
                        "kind": "ElasticQuota",
                        "metadata": {"name": name, "namespace": "q"},
                        "spec": spec,
                    }
                )
        return [*found, *copy.deepcopy(self.quotas)]

    def _config(self) -> list[Json]:
        if "yunikorn" not in self.families:
            return []
        queues = [
            {"name": "yone", "resources": {"guaranteed": {"vcore": "2"}}},
            {"name": "ytwo", "resources": {"max": {"vcore": "3"}}},
        ]
        partitions = [{"name": "default", "queues": [{"name": "root", "submitacl": "*", "queues": queues}]}]
        text = json.dumps({"partitions": partitions})
        metadata = {"name": "yunikorn-configs", "namespace": "yunikorn"}
        return [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"queues.yaml": text}}]

    # Nodes.

    def _node(self) -> list[Json]:
        self.count += 1
        name, kind = f"n{self.count}", self.dice.choice(self.kinds)
        self.nodes[name] = make_node(self.dice, name, kind)
        return copy.deepcopy(self.nodes[name])

    # Pods.

    def _newcomers(self, count: int) -> list[Json]:
        return [document for _ in range(count) for document in self._newcomer()]

    def _newcomer(self) -> list[Json]:
        self.count += 1
        dice, name = self.dice, f"p{self.count}"
        asks = self._asks()
        match dice.choice(("pod", "pod", "pod", "gang", "gang", "queued", "queued")):
            case "queued" if self.families:
                return self._queued(name, dice.choice(self.families), asks)
            case "gang":
                return self._gang(name, asks)
        pod = self._pod(name, asks)
        self.pods.append(pod)
        return [copy.deepcopy(pod)]

    def _asks(self) -> Json:
        """What each of some pods is to be like: a function of nothing but this."""
        dice = self.dice
        asks: Json = {"cpu": dice.choice(("500m", "1", "1", "2", "3")), "priority": dice.choice(PRIORITIES)}
        asks["app"] = dice.choice(("x", "y", "z"))
        asks["kind"] = kind = dice.choice(self.kinds)
        match kind:
            case "counted":
                asks["device"] = dice.choice(
                    (("gpu", 1), ("gpu", 2), ("fraction", "0.5"), ("fraction", "0.3"), ("fraction", "0.7"))
                )
            case "hami":
                asks["device"] = ("hami", dice.choice(((1, 4000, 30), (1, 8000, 50), (2, 4000, 30), (1, 16000, 100))))
            case "koordinator":
                asks["device"] = ("koordinator", dice.choice((50, 30, 100, 70)))
            case "mig":
                asks["device"] = ("mig", dice.choice(MIG))
            case "numa":
                asks["device"] = ("numa", dice.choice(("1", "2", "3", "4")))
            case "whole":
                asks["device"] = ("claim", dice.choice(("whole", "whole", "two", "either")))
            case "parts":
                asks["device"] = ("claim", dice.choice(("whole", "either", "half", "quarter")))
            case "amounts":
                asks["device"] = ("claim", dice.choice(("few", "many")))
        if dice.random() < 0.3:
            asks.pop("device", None)
        match dice.randint(0, 13):
            case 0 | 1:
                asks["spread"] = (dice.choice(("zone", "kubernetes.io/hostname")), dice.choice((1, 1, 2)))
            case 2:
                asks["anti"] = (dice.choice(("zone", "kubernetes.io/hostname")), dice.choice(("x", "y", "z")))
            case 3:
                asks["near"] = (dice.choice(("zone", "kubernetes.io/hostname")), dice.choice(("x", "y", "z")))
            case 4:
                asks["selector"] = {"zone": dice.choice(("z1", "z2"))}
            case 5:
                asks["tolerates"] = True
            case 6:
                asks["port"] = 8080
        if dice.random() < 0.15:
            asks["seconds"] = dice.choice((30, 90, 500))
        if dice.random() < 0.05:
            asks["never"] = True
        return asks

    def _pod(self, name: str, asks: Json, namespace: str = "a") -> Json:
        return make_pod(name, asks, namespace)

    def _gang(self, name: str, asks: Json, queue: str = "", namespace: str = "a") -> list[Json]:
        asks.pop("seconds", None)
        size = self.dice.randint(2, 3)
        dialect = (
            "volcano"
            if queue
            else self.dice.choice(("sig", "mooring", "volcano" if "volcano" in self.families else "sig"))
        )
        minimum = size - (self.dice.random() < 0.25)
        pods = [self._pod(f"{name}-{number}", asks, namespace) for number in range(size)]
        if dialect == "mooring":
            for pod in pods:
                pod["metadata"]["annotations"] |= {
                    "mooring.dev/gang-name": name,
                    "mooring.dev/gang-minimum": str(minimum),
                }
            self.pods += pods[:1]
            return copy.deepcopy(pods)
        api = "scheduling.x-k8s.io/v1alpha1" if dialect == "sig" else "scheduling.volcano.sh/v1beta1"
        spec: Json = {"minMember": minimum}
        if dialect == "volcano":
            spec["queue"] = queue or "vone"
        group = {
            "apiVersion": api,
            "kind": "PodGroup",
            "metadata": {"name": name, "namespace": namespace},
            "spec": spec,
        }
        for pod in pods:
            if dialect == "sig":
                pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] = name
            else:
                pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] = name
        self.pods += pods[:1]
        return [group, *copy.deepcopy(pods)]

    def _queued(self, name: str, family: str, asks: Json) -> list[Json]:
        dice = self.dice
        if family == "kueue":
            if asks.get("device", ("",))[0] not in ("gpu", "fraction"):
                asks.pop("device", None)  # of which the queues have no quota
            template = self._pod(name, asks)
            count = dice.randint(1, 3)
            spec = {"restartPolicy": "Never", **template["spec"]}
            metadata = {"labels": template["metadata"]["labels"], "annotations": template["metadata"]["annotations"]}
            queue = {"kueue.x-k8s.io/queue-name": dice.choice(("one", "two"))}
            return [
                {
                    "apiVersion": "batch/v1",
                    "kind": "Job",
                    "metadata": {"name": name, "namespace": "a", "labels": queue},
                    "spec": {
                        "parallelism": count,
                        "completions": count,
                        "template": {"metadata": metadata, "spec": spec},
                    },
                }
            ]
        if family == "volcano":
            return self._gang(name, asks, dice.choice(("vone", "vtwo")))
        namespace = {"sig": "e", "koordinator-quota": "q"}.get(family, "a")
        pod = self._pod(name, asks, namespace)
        labels = pod["metadata"]["labels"]
        match family:
            case "kai":
                labels["kai.scheduler/queue"] = dice.choice(("kone", "ktwo"))
            case "yunikorn":
                labels |= {
                    "applicationId": dice.choice(("app-1", "app-2", name)),
                    "queue": dice.choice(("root.yone", "root.ytwo")),
                }
            case "koordinator-quota":
                labels["quota.scheduling.koordinator.sh/name"] = dice.choice(("qone", "qtwo"))
        self.pods.append(pod)
        return [copy.deepcopy(pod)]

    # What happens.

    def _happenings(self) -> list[Callable[[], list[Json]]]:
        return [self._end, self._end, self._lose_node, self._node, self._taint, self._change_quota, self._resize]

    def _end(self) -> list[Json]:
        if not self.pods:
            return []
        pod = self.pods.pop(self.dice.randrange(len(self.pods)))
        metadata = {"name": pod["metadata"]["name"], "namespace": pod["metadata"]["namespace"]}
        if self.dice.random() < 0.5:
            return [{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": {"phase": "Succeeded"}}]
        return [gone({"apiVersion": "v1", "kind": "Pod", "metadata": metadata})]

    def _lose_node(self) -> list[Json]:
        if len(self.nodes) < 2 or self.dice.random() < 0.4:
            return []
        return [gone(document) for document in self.nodes.pop(self.dice.choice(sorted(self.nodes)))]

    def _taint(self) -> list[Json]:
        if not self.nodes:
            return []
        node = self.nodes[self.dice.choice(sorted(self.nodes))][0]
        effect = self.dice.choice(("NoSchedule", "NoExecute", "", "", "cordon"))
        node["spec"] = {"taints": [{"key": "broken", "effect": effect}]} if effect.startswith("No") else {}
        if effect == "cordon":
            node["spec"] = {"unschedulable": True}
        return [copy.deepcopy(node)]

    def _change_quota(self) -> list[Json]:
        if not self.quotas:
            return []
        quota, dice = self.dice.choice(self.quotas), self.dice
        spec = quota["spec"]
        match quota["kind"], quota["apiVersion"].partition("/")[0]:
            case "ClusterQueue", _:
                spec["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] = dice.randint(1, 6)
            case "Queue", "scheduling.volcano.sh":
                spec["weight"] = dice.randint(1, 4)
            case "Queue", _:
                if "parentQueue" in spec:
                    spec["resources"]["cpu"] = {"quota": 1000, "limit": 1000 * dice.randint(1, 6), "overQuotaWeight": 1}
            case _:
                spec["max"] = {"cpu": str(dice.randint(3, 7))}
        return [copy.deepcopy(quota)]

    def _resize(self) -> list[Json]:
        plain = [pod for pod in self.pods if "limits" not in pod["spec"]["containers"][0]["resources"]]
        if not plain:
            return []
        pod = self.dice.choice(plain)
        pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = self.dice.choice(("500m", "1", "2", "3"))
        return [copy.deepcopy(pod)]


def gone(document: Json) -> Json:
    """The document by which a story deletes an object."""
    metadata = {key: value for key, value in document["metadata"].items() if key in ("name", "namespace")}
    return {
        "apiVersion": document["apiVersion"],
        "kind": document["kind"],
        "metadata": {**metadata, "deletionTimestamp": GONE},
    }


def _last_of_each(documents: list[Json]) -> list[Json]:
    """One document for each object: a step says of each how it is in the end."""
    by_key: dict[tuple[str, ...], Json] = {}
    for document in documents:
        metadata = document["metadata"]
        key = (document["kind"], document["apiVersion"], metadata.get("namespace", ""), metadata["name"])
        if key in by_key and "containers" not in document.get("spec", {}) and "spec" in by_key.pop(key):
            continue  # came and went within one step
        by_key[key] = document
    return list(by_key.values())


def make_node(dice: random.Random, name: str, kind: str) -> list[Json]:
    """A node that hands out its devices in one way, and the objects that say so."""
    labels = {"kubernetes.io/hostname": name, "zone": dice.choice(("z1", "z2")), "kind": kind}
    room: Json = {"cpu": str(dice.choice((2, 4, 4, 8))), "memory": "64Gi", "pods": str(dice.choice((3, 20, 20)))}
    annotations: Json = {}
    more: list[Json] = []
    cards = dice.randint(1, 3)
    match kind:
        case "counted":
            labels["nvidia.com/gpu.memory"] = "16000"
            room["nvidia.com/gpu"] = str(cards)
        case "hami":
            register = [
                {
                    "id": f"GPU-{name}-{i}",
                    "index": i,
                    "count": 4,
                    "devmem": 16000,
                    "devcore": 100,
                    "type": "T",
                    "health": True,
                }
                for i in range(cards)
            ]
            annotations["hami.io/node-nvidia-register"] = json.dumps(register)
            room["nvidia.com/gpu"] = str(4 * cards)
        case "koordinator":
            room |= {"koordinator.sh/gpu-core": str(100 * cards), "koordinator.sh/gpu-memory-ratio": str(100 * cards)}
            amounts = {
                "koordinator.sh/gpu-core": "100",
                "koordinator.sh/gpu-memory-ratio": "100",
                "koordinator.sh/gpu-memory": "16Gi",
            }
            devices = [
                {"type": "gpu", "id": f"{name}-{i}", "minor": i, "health": True, "resources": amounts}
                for i in range(cards)
            ]
            api = "scheduling.koordinator.sh/v1alpha1"
            more.append({"apiVersion": api, "kind": "Device", "metadata": {"name": name}, "spec": {"devices": devices}})
        case "mig":
            labels |= {
                "nos.nebuly.com/gpu-partitioning": "mig",
                "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB",
                "nvidia.com/gpu.memory": "81920",
            }
            cards = min(cards, 2)
            room["nvidia.com/gpu"] = str(cards)
        case "numa":
            room["cpu"] = "8"
            machine = {
                "sockets": 2,
                "numaPerSocket": 1,
                "coresPerNuma": 4,
                "threadsPerCore": 1,
                "memoryPerNuma": "32Gi",
            }
            kubelet = {
                "topologyManagerPolicy": "single-numa-node",
                "topologyManagerScope": "pod",
                "cpuManagerPolicy": "static",
                "memoryManagerPolicy": "None",
            }
            annotations |= {
                "mooring.dev/machine": json.dumps({"regular": machine}),
                "mooring.dev/kubelet": json.dumps(kubelet),
            }
        case "whole" | "parts" | "amounts":
            more += make_slices(name, kind, cards)
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": annotations},
        "spec": {},
        "status": {"allocatable": room},
    }
    return [node, *more]


def make_slices(node: str, kind: str, cards: int) -> list[Json]:
    """Devices of a node: whole ones, ones that can be had in parts, or ones that are given out by amounts."""

    def device(name: str, sort: str, **more: Any) -> Json:
        return {"name": name, "attributes": {"kind": {"string": sort}}, **more}

    def drawn(name: str, sort: str, card: int, parts: int) -> Json:
        counters = [{"counterSet": f"card-{card}", "counters": {"parts": {"value": str(parts)}}}]
        return device(name, sort, consumesCounters=counters)

    def slice_of(name: str, slices: int, **more: Any) -> Json:
        pool = {"name": node, "generation": 1, "resourceSliceCount": slices}
        spec = {"driver": DRIVER, "nodeName": node, "pool": pool, **more}
        return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}

    if kind == "whole":
        return [slice_of(node, 1, devices=[device(f"gpu-{i}", "whole") for i in range(cards)])]
    if kind == "amounts":
        capacity = {
            "memory": {"value": "8Gi", "requestPolicy": {"default": "1Gi", "validRange": {"min": "1Gi", "step": "1Gi"}}}
        }
        devices = [device(f"gpu-{i}", "amount", allowMultipleAllocations=True, capacity=capacity) for i in range(cards)]
        return [slice_of(node, 1, devices=devices)]
    counters = [{"name": f"card-{i}", "counters": {"parts": {"value": "4"}}} for i in range(cards)]
    devices = []
    for card in range(cards):
        devices.append(drawn(f"gpu-{card}", "whole", card, 4))
        devices += [drawn(f"gpu-{card}-half-{i}", "half", card, 2) for i in range(2)]
        devices += [drawn(f"gpu-{card}-quarter-{i}", "quarter", card, 1) for i in range(4)]
    return [slice_of(f"{node}-counters", 2, sharedCounters=counters), slice_of(node, 2, devices=devices)]


def make_pod(name: str, asks: Json, namespace: str) -> Json:
    """A pod that asks for one thing in one dialect."""
    requests: Json = {"cpu": asks["cpu"], "memory": "1Gi"}
    limits: Json = {}
    annotations: Json = {}
    container: Json = {"name": "m", "image": "i"}
    spec: Json = {"priority": asks["priority"], "containers": [container]}
    match asks.get("device"):
        case ("gpu", count):
            limits["nvidia.com/gpu"] = str(count)
        case ("fraction", part):
            annotations["gpu-fraction"] = part
        case ("hami", (count, memory, cores)):
            limits |= {
                "nvidia.com/gpu": str(count),
                "nvidia.com/gpumem": str(memory),
                "nvidia.com/gpucores": str(cores),
            }
        case ("koordinator", percent):
            limits |= {"koordinator.sh/gpu-core": str(percent), "koordinator.sh/gpu-memory-ratio": str(percent)}
        case ("mig", profile):
            limits[f"nvidia.com/mig-{profile}"] = "1"
        case ("numa", cpus):
            requests = {"cpu": cpus, "memory": "1Gi"}
            limits = dict(requests)
        case ("claim", template):
            spec["resourceClaims"] = [{"name": "g", "resourceClaimTemplateName": template}]
            container["resources"] = {"claims": [{"name": "g"}]}
    resources = {"requests": requests} | ({"limits": limits} if limits else {})
    container["resources"] = container.get("resources", {}) | resources
    if asks.get("device", ("",))[0] == "hami":
        spec["nodeSelector"] = {"kind": "hami"}
    labels = {"app": asks["app"]}
    selector = {"matchLabels": {"app": asks["app"]}}
    if "spread" in asks:
        key, skew = asks["spread"]
        constraint = {
            "maxSkew": skew,
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": selector,
        }
        spec["topologySpreadConstraints"] = [constraint]
    for word, name_of in (("anti", "podAntiAffinity"), ("near", "podAffinity")):
        if word in asks:
            key, app = asks[word]
            term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
            spec["affinity"] = {name_of: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    if "selector" in asks:
        spec["nodeSelector"] = {**spec.get("nodeSelector", {}), **asks["selector"]}
    if "tolerates" in asks:
        spec["tolerations"] = [{"key": "broken", "operator": "Exists"}]
    if "port" in asks:
        container["ports"] = [{"containerPort": asks["port"], "hostPort": asks["port"]}]
    if "seconds" in asks:
        annotations["mooring.dev/duration"] = f"{asks['seconds']}s"
    if "never" in asks:
        spec["preemptionPolicy"] = "Never"
    metadata = {"name": name, "namespace": namespace, "labels": labels, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
