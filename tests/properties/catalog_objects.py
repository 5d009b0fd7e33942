"""A small world of objects that have much to do with one another, each in several versions."""

from collections.abc import Iterator
from itertools import product
from typing import Any

Document = dict[str, Any]

QUEUE = "kueue.x-k8s.io/queue-name"
GROUP = "kueue.x-k8s.io/pod-group-name"
TOTAL = "kueue.x-k8s.io/pod-group-total-count"
REQUIRED = "kueue.x-k8s.io/podset-required-topology"
GANG_MARKS: list[Document] = [
    {},
    {"mooring.dev/gang-name": "crew"},
    {"mooring.dev/gang-name": "crew", "mooring.dev/gang-minimum": "2"},
    {"scheduling.k8s.io/group-name": "crew"},
    {"pod-group-name": "crew"},
    {REQUIRED: "zone"},
    {"gang.scheduling.koordinator.sh/name": "crew", "gang.scheduling.koordinator.sh/min-available": "1"},
    {
        "gang.scheduling.koordinator.sh/name": "other",
        "gang.scheduling.koordinator.sh/min-available": "1",
        "gang.scheduling.koordinator.sh/groups": '["default/crew", "default/other"]',
    },
]
CLASSES = ["", "urgent"]
QUEUES = ["", "team"]


def document(api_version: str, kind: str, name: str, spec: Document | None = None, **metadata: Any) -> Document:
    found: Document = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **metadata}}
    return found if spec is None else {**found, "spec": spec}


def in_queue(queue: str) -> Document:
    return {QUEUE: queue} if queue else {}


def pod_spec(priority_class: str = "", **more: Any) -> Document:
    containers = [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]
    named = {"priorityClassName": priority_class} if priority_class else {}
    return {"containers": containers, "restartPolicy": "Never", **named, **more}


def template(priority_class: str = "", queue: str = "", annotations: Document | None = None) -> Document:
    metadata = {"labels": {"app": "web", **in_queue(queue)}, "annotations": annotations or {}}
    return {"metadata": metadata, "spec": pod_spec(priority_class)}


def owner(api_version: str, kind: str, name: str) -> list[Document]:
    return [{"apiVersion": api_version, "kind": kind, "name": name, "controller": True}]


OWNERS: list[list[Document]] = [
    [],
    owner("batch/v1", "Job", "train"),
    owner("apps/v1", "ReplicaSet", "web-1"),
    owner("apps/v1", "StatefulSet", "db"),
    owner("batch.volcano.sh/v1alpha1", "Job", "train"),
]
LABELS: list[Document] = [
    {},
    in_queue("team"),
    {**in_queue("team"), GROUP: "plain"},
    {"scheduling.x-k8s.io/pod-group": "crew"},
    {"jobset.sigs.k8s.io/jobset-name": "set", "jobset.sigs.k8s.io/replicatedjob-name": "worker"},
    {"leaderworkerset.sigs.k8s.io/name": "serve", "leaderworkerset.sigs.k8s.io/group-index": "0"},
    {
        "leaderworkerset.sigs.k8s.io/name": "serve",
        "leaderworkerset.sigs.k8s.io/group-index": "0",
        "leaderworkerset.sigs.k8s.io/worker-index": "1",
        "kai.scheduler/queue": "research",
        "priorityClassName": "urgent",
    },
]
STATUSES: list[Document] = [{}, {"phase": "Running"}, {"phase": "Succeeded"}]


def pods(name: str) -> Iterator[Document]:
    for marks, labels, owners in product(GANG_MARKS, LABELS, OWNERS):
        annotations = {**marks, **({TOTAL: "2"} if GROUP in labels else {})}
        yield document("v1", "Pod", name, pod_spec(), labels=labels, annotations=annotations, ownerReferences=owners)
    for priority_class, status, node, owners in product(CLASSES, STATUSES, ["", "n1"], OWNERS):
        placed = {"nodeName": node} if node else {}
        found = document("v1", "Pod", name, pod_spec(priority_class, **placed), ownerReferences=owners)
        yield {**found, "status": status}


def workloads() -> Iterator[list[Document]]:
    """What controllers turn into pods."""
    for name in ("train", "other"):
        yield [
            document(
                "batch/v1",
                "Job",
                name,
                {"parallelism": count, "completions": 2, "template": template(named)},
                labels=in_queue(queue),
                annotations=marks,
            )
            for count, named, queue, marks in product((1, 2), CLASSES, QUEUES, GANG_MARKS)
        ]
    yield [
        document("apps/v1", "Deployment", "web", {"replicas": count, "template": template(queue=inner)}, labels=outer)
        for count, inner, outer in product((1, 2), QUEUES, ({}, in_queue("team"), {"kai.scheduler/queue": "research"}))
    ]
    yield [
        document(
            "apps/v1",
            "ReplicaSet",
            "web-1",
            {"replicas": count, "template": template(), "selector": {"matchLabels": {"app": "web"}}},
            ownerReferences=owners,
            annotations=marks,
        )
        for count, owners, marks in product((0, 2), ([], owner("apps/v1", "Deployment", "web")), GANG_MARKS[:2])
    ]
    claims = [{"metadata": {"name": "data"}, "spec": {}}]
    yield [
        document(
            "apps/v1",
            "StatefulSet",
            "db",
            {"replicas": count, "template": template(), "volumeClaimTemplates": volumes},
            labels=in_queue(queue),
        )
        for count, volumes, queue in product((1, 2), ([], claims), QUEUES)
    ]
    yield [
        document("apps/v1", "DaemonSet", "agent", {"template": {**template(), "spec": pod_spec(nodeSelector=selector)}})
        for selector in ({}, {"pool": "a"})
    ]
    inner = {"parallelism": 2, "completions": 2, "template": template()}
    yield [
        document(
            "jobset.x-k8s.io/v1alpha2",
            "JobSet",
            "set",
            {"replicatedJobs": [{"name": "worker", "replicas": count, "template": {"spec": inner}}]},
            labels=in_queue(queue),
            annotations=marks,
        )
        for count, queue, marks in product((1, 2), QUEUES, GANG_MARKS[:2])
    ]
    yield [
        document(
            "batch.volcano.sh/v1alpha1",
            "Job",
            "train",
            {
                "minAvailable": count,
                "priorityClassName": named,
                "tasks": [{"name": "main", "replicas": 2, "template": template()}],
                "networkTopology": {"mode": "hard", "highestTierName": "rack"},
            },
            labels=in_queue(queue),
        )
        for count, named, queue in product((1, 2), CLASSES, QUEUES)
    ]
    yield [
        document(
            "leaderworkerset.x-k8s.io/v1",
            "LeaderWorkerSet",
            "serve",
            {"replicas": count, "leaderWorkerTemplate": {"size": 2, "workerTemplate": template()}},
            labels=labels,
        )
        for count, labels in product((1, 2), ({}, in_queue("team"), {"kai.scheduler/queue": "research"}))
    ]
    clique = {"name": "main", "spec": {"roleName": "main", "replicas": 2, "podSpec": pod_spec()}}
    yield [
        document(
            "grove.io/v1alpha1",
            "PodCliqueSet",
            "llm",
            {
                "replicas": count,
                "template": {"cliques": [clique], "topologyConstraint": {"pack": {"required": "rack"}}},
            },
        )
        for count in (1, 2)
    ]


def flows() -> Iterator[list[Document]]:
    """Workloads that make other workloads, and those that have a cluster made for them."""
    tasks = {"tasks": [{"name": "main", "replicas": 2, "template": template()}]}
    orders: list[Document] = [{"name": "b"}, {"name": "b", "dependsOn": {"targets": ["a"]}}]
    yield [
        document("flow.volcano.sh/v1alpha1", "JobFlow", "flow", {"flows": [{"name": "a"}, order]}) for order in orders
    ]
    for name in ("a", "b"):
        yield [
            document("flow.volcano.sh/v1alpha1", "JobTemplate", name, {**tasks, "priorityClassName": named})
            for named in CLASSES
        ]
    jobs = (
        document("batch.volcano.sh/v1alpha1", "Job", "flow-a", tasks, ownerReferences=owners)
        for owners in ([], owner("flow.volcano.sh/v1alpha1", "JobFlow", "flow"))
    )
    yield [{**job, "status": {"state": {"phase": phase}}} for job in jobs for phase in ("Running", "Completed")]
    yield [
        document("batch.volcano.sh/v1alpha1", "CronJob", "nightly", {"suspend": off, "jobTemplate": {"spec": tasks}})
        for off in (True, False)
    ]
    yield [
        document(
            "sparkoperator.k8s.io/v1beta2", "SparkApplication", "pi", {"executor": {"instances": 2}}, labels=labels
        )
        for labels in ({}, in_queue("team"), {"kai.scheduler/queue": "research"})
    ]
    cluster = {"headGroupSpec": {"template": template()}, "enableInTreeAutoscaling": True}
    yield [
        document("ray.io/v1", "RayService", "ray", {"rayClusterConfig": cluster}, labels=labels)
        for labels in ({}, {"kai.scheduler/queue": "research"})
    ]


def groups() -> Iterator[list[Document]]:
    """Objects that declare gangs."""
    for api_version, field in (
        ("scheduling.volcano.sh/v1beta1", "minMember"),
        ("scheduling.x-k8s.io/v1alpha1", "minMember"),
        ("scheduling.run.ai/v2alpha2", "minMember"),
    ):
        yield [document(api_version, "PodGroup", "crew", {field: count}) for count in (1, 2)]
    yield [
        document("scheduling.run.ai/v2alpha2", "PodGroup", "pg-serve-group-0", {"minMember": count}) for count in (1, 2)
    ]
    yield [
        document("grove.io/v1alpha1", "ClusterTopologyBinding", "levels", {"levels": [{"domain": "rack", "key": key}]})
        for key in ("rack", "row")
    ]
    member = [{"type": "Node", "selector": {"exactMatch": {"name": "n1"}}}]
    yield [
        document(
            "topology.volcano.sh/v1alpha1",
            "HyperNode",
            "h1",
            {"tier": tier, "tierName": "rack", "members": member},
        )
        for tier in (1, 2)
    ]


def queues() -> Iterator[list[Document]]:
    """Queues, classes, flavors, and Workloads as a cluster has them."""
    for name in ("team", "default"):
        yield [document("kueue.x-k8s.io/v1beta2", "LocalQueue", name, {"clusterQueue": "all"})]
    flavors = {"coveredResources": ["cpu"], "flavors": [{"name": "spot", "resources": [{"name": "cpu"}]}]}
    yield [
        document(
            "kueue.x-k8s.io/v1beta2",
            "ClusterQueue",
            "all",
            {
                "resourceGroups": [
                    {**flavors, "flavors": [{"name": "spot", "resources": [{"name": "cpu", "nominalQuota": quota}]}]}
                ],
                "namespaceSelector": {},
            },
        )
        for quota in (2, 4)
    ]
    yield [
        document("kueue.x-k8s.io/v1beta2", "ResourceFlavor", "spot", {"nodeLabels": labels})
        for labels in ({}, {"pool": "a"})
    ]
    yield [
        {**document("kueue.x-k8s.io/v1beta2", "WorkloadPriorityClass", "default"), "value": value} for value in (1, 2)
    ]
    pod_sets = [{"name": "main", "count": 2, "template": template()}]
    admission = {
        "clusterQueue": "all",
        "podSetAssignments": [{"name": "main", "flavors": {"cpu": "spot"}, "resourceUsage": {"cpu": "2"}, "count": 2}],
    }
    conditions = [
        {"type": type_, "status": "True", "reason": type_, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for type_ in ("QuotaReserved", "Admitted")
    ]
    for name, owners in (
        ("train-1", owner("batch/v1", "Job", "train")),
        ("plain", []),
        ("pod-p1-00000", [{**owner("v1", "Pod", "p1")[0]}]),
    ):
        yield [
            {
                **document(
                    "kueue.x-k8s.io/v1beta2",
                    "Workload",
                    name,
                    {"queueName": "team", "podSets": pod_sets},
                    ownerReferences=owners,
                ),
                "status": status,
            }
            for status in ({}, {"admission": admission, "conditions": conditions})
        ]


def others() -> Iterator[list[Document]]:
    """Nodes, classes of priority and storage, volumes, quotas, what is shown to the engine as it is."""
    yield [
        {**document("scheduling.k8s.io/v1", "PriorityClass", "urgent"), "value": value, "globalDefault": default}
        for value, default in product((10, 20), (False, True))
    ]
    for name in ("n1", "n2"):
        yield [
            {
                **document("v1", "Node", name, labels={"pool": pool, "zone": "z"}),
                "status": {"allocatable": {"cpu": cpu, "pods": 20}, "conditions": [{"type": "Ready", "status": ready}]},
            }
            for pool, cpu, ready in product("ab", (2, 4), ("True", "False"))
        ]
    yield [
        document("v1", "Node", "pool-{i}", annotations={"mooring.dev/replicas": count}, labels={"pool": "a"})
        | {"status": {"allocatable": {"cpu": 2, "pods": 20}}}
        for count in ("1", "2")
    ]
    yield [document("v1", "Namespace", "default", labels=labels) for labels in ({}, {"team": "a"})]
    yield [document("v1", "Service", "web", {"selector": {"app": app}}) for app in ("web", "shop")]
    yield [
        {
            **document("policy/v1", "PodDisruptionBudget", "web", {"maxUnavailable": 1}),
            "status": {"disruptionsAllowed": allowed, "currentHealthy": healthy},
        }
        for allowed, healthy in product((0, 1), (1, 2))
    ]
    yield [
        document(
            "storage.k8s.io/v1",
            "StorageClass",
            "fast",
            annotations={"storageclass.kubernetes.io/is-default-class": default},
        )
        | {"provisioner": "csi"}
        for default in ("true", "false")
    ]
    yield [document("v1", "PersistentVolumeClaim", "data-db-0", {"volumeName": name}) for name in ("", "v1")]
    yield [document("v1", "PersistentVolume", "v1", {"storageClassName": name}) for name in ("", "fast")]
    yield [document("v1", "ResourceQuota", "all", {"hard": {"pods": count}}) for count in ("3", "9")]
    yield [
        document("v1", "LimitRange", "all", {"limits": [{"type": "Container", "defaultRequest": {"memory": memory}}]})
        for memory in ("1Mi", "2Mi")
    ]


WORLD: list[list[Document]] = [
    *([list(pods(name)) for name in ("p1", "p2", "p3")]),
    *workloads(),
    *flows(),
    *groups(),
    *queues(),
    *others(),
]
"""Every object in all of its versions."""


def lone_pods(name: str) -> Iterator[Document]:
    """Pods that say little or nothing of anybody else."""
    further: list[Document] = [
        {},
        {"resourceVersion": "1"},
        {"labels": {"app": "web"}},
        {"labels": in_queue("team")},
        {"labels": {"kai.scheduler/queue": "research"}},
        {"annotations": {"mooring.dev/gang-name": "crew"}},
    ]
    specs: list[Document] = [
        pod_spec(),
        pod_spec("urgent"),
        pod_spec("urgent", priority=10),
        pod_spec(priority=0, preemptionPolicy="Never"),
        pod_spec(schedulerName="kai-scheduler"),
    ]
    owners = [*OWNERS[:4], owner("v1", "Pod", "p1")]
    for metadata, spec, owned, node in product(further, specs, owners, ["", "n1"]):
        placed = {"nodeName": node} if node else {}
        for status in STATUSES[:2]:
            yield {
                **document("v1", "Pod", name, {**spec, **placed}, ownerReferences=owned, **metadata),
                "status": status,
            }


def owners_of_pods() -> Iterator[list[Document]]:
    """Owners with and without a word for their pods."""
    annotations: list[Document] = [{}, {}, {"mooring.dev/gang": "true"}, {"mooring.dev/gang-minimum": "1"}]
    labels: list[Document] = [{}, {}, in_queue("team"), {"kai.scheduler/queue": "research"}]
    templates = [template(), template("urgent"), {**template(), "spec": pod_spec(schedulerName="kai-scheduler")}]
    for api_version, kind, name, owners in (
        ("apps/v1", "Deployment", "web", [[]]),
        ("apps/v1", "ReplicaSet", "web-1", [[], owner("apps/v1", "Deployment", "web")]),
        ("apps/v1", "StatefulSet", "db", [[]]),
        ("batch/v1", "Job", "train", [[], owner("batch/v1", "CronJob", "train")]),
    ):
        yield [
            document(
                api_version, kind, name, {"template": made}, annotations=notes, labels=marks, ownerReferences=owned
            )
            for made, notes, marks, owned in product(templates, annotations, labels, owners)
        ]
    yield [
        document("batch/v1", "CronJob", "train", {"jobTemplate": {"spec": {"template": made}}}, labels=marks)
        for made, marks in product(templates, labels)
    ]


LONE_WORLD: list[list[Document]] = [
    *([list(lone_pods(name)) for name in ("p1", "p2", "p3", "p4")]),
    *owners_of_pods(),
    *(
        versions
        for versions in WORLD
        if (versions[0]["kind"], versions[0]["metadata"]["name"])
        in (
            *(("Workload", "pod-p1-00000"), ("LocalQueue", "team"), ("LocalQueue", "default"), ("ClusterQueue", "all")),
            *(("PriorityClass", "urgent"), ("Node", "n1"), ("PodGroup", "crew")),
        )
    ),
]
"""Pods most of which are alone, and whoever may end that."""
