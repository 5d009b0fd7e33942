"""DaemonSets: one pod on each node that their template allows."""

import msgspec

from mooring.kubeapi.controllers.controller import Controller, Key, Object
from mooring.kubeapi.controllers.ownership import Claims, selector_of
from mooring.kubeapi.controllers.pods import PodView, delete_pod, make_pod
from mooring.kubeapi.controllers.revisions import Revisions
from mooring.kubeapi.controllers.rollouts import scaled
from mooring.kubeapi.controllers.slices import SLICE
from mooring.kubeapi.status import ApiError
from mooring.model.api.nodes import Node
from mooring.model.api.pods import PodSpec
from mooring.model.loading.daemons import suitable_nodes, with_daemon_tolerations

RESOURCE = "daemonsets.apps"
HASH_LABEL = "controller-revision-hash"
TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
FAILED_BACKOFF_SECONDS, LONGEST_FAILED_BACKOFF_SECONDS = 1.0, 900.0


class DaemonSets(Controller):
    """Keeps the pods of DaemonSets."""

    name = "daemonset-controller"

    def start(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.failures: dict[tuple[str, str], tuple[int, float]] = {}
        self._sets = self.follow(RESOURCE)
        self.revisions = self.informers.of("controllerrevisions.apps")
        self.informers.of("nodes").on_change(self._node_changed)
        self.follow_controlled(self.informers.pods, "DaemonSet")
        self.informers.pods.on_change(self._orphan_changed)

    def _orphan_changed(self, old: PodView | None, new: PodView | None) -> None:
        """A pod of nobody concerns whoever selects it."""
        for pod in (old, new):
            if pod is None or pod.metadata.controller is not None or not pod.metadata.labels:
                continue
            for found in list(self._sets.list(pod.metadata.namespace)):
                if selector_of(found["spec"].get("selector")).matches(pod.metadata.labels):
                    self.enqueue((pod.metadata.namespace, found["metadata"]["name"]))

    def _node_changed(self, old: Object | None, new: Object | None) -> None:
        if new is None:
            if old is not None:
                self.nodes.pop(old["metadata"]["name"], None)
        else:
            if old is not None and _matters(old) == _matters(new):
                return
            self.nodes[new["metadata"]["name"]] = msgspec.convert(_matters(new), Node)
        for found in list(self._sets.list()):
            self.enqueue((found["metadata"]["namespace"], found["metadata"]["name"]))

    def sync(self, key: Key) -> None:
        found = self.api.find(RESOURCE, *key)
        if found is None:
            return
        selector = selector_of(found["spec"].get("selector"))
        if selector.is_empty:
            return
        owned = list(self.informers.pods.controlled_by(found["metadata"]["uid"]))
        orphans = [pod for pod in self.informers.pods.orphans(key[0]) if selector.matches(pod.metadata.labels)]
        claimed = Claims(self.api, "pods", found, selector).settle([*owned, *orphans], lambda pod: pod.metadata)
        pods = [pod for pod in (self.informers.pods.get(*one.key) for one in claimed) if pod is not None]
        _Turn(self, found, pods).run()


def _matters(node: Object) -> Object:
    """What of a node decides whether a daemon runs there."""
    metadata, spec = node["metadata"], node.get("spec") or {}
    return {
        "metadata": {"name": metadata["name"], "labels": metadata.get("labels") or {}},
        "spec": {key: spec[key] for key in ("taints", "unschedulable") if key in spec},
    }


class _Turn:
    """One look at one DaemonSet."""

    def __init__(self, controller: DaemonSets, found: Object, pods: list[PodView]) -> None:
        self.controller, self.api, self.now = controller, controller.api, controller.now
        self.set, self.spec, self.pods = found, found["spec"], pods
        self.namespace, self.name = found["metadata"]["namespace"], found["metadata"]["name"]
        self.min_ready = float(self.spec.get("minReadySeconds") or 0)
        strategy = self.spec.get("updateStrategy") or {}
        self.strategy, self.rolling = strategy.get("type", "RollingUpdate"), strategy.get("rollingUpdate") or {}
        self.template = msgspec.convert(self.spec["template"]["spec"], PodSpec)
        self.history = Revisions(self.api, controller.revisions, found, HASH_LABEL)

    def run(self) -> None:
        self.history.adopt_orphans((self.spec.get("selector") or {}).get("matchLabels") or {})
        collisions = (self.set.get("status") or {}).get("collisionCount") or 0
        revision, self.collisions = self.history.of_now(collisions)
        self.hash = revision["metadata"]["labels"][HASH_LABEL]
        tolerant = with_daemon_tolerations(self.template)
        self.tolerations = msgspec.to_builtins(tolerant.tolerations)
        nodes = list(self.controller.nodes.values())
        self.wanted = {node.name for node in suitable_nodes(tolerant, nodes)}
        # A taint that only forbids scheduling does not drive away who is there already.
        lenient = [_without_no_schedule(node) for node in nodes]
        self.tolerated = {node.name for node in suitable_nodes(tolerant, lenient)}
        if "deletionTimestamp" not in self.set["metadata"]:
            self._manage()
            if self.strategy == "RollingUpdate":
                self._roll()
        self._write_status()
        live = {pod.metadata.labels.get(HASH_LABEL, "") for pod in self._current()}
        keep = {
            one["metadata"]["name"] for one in self.history.all() if one["metadata"]["labels"].get(HASH_LABEL) in live
        }
        self.history.truncate(keep | {revision["metadata"]["name"]}, self.spec.get("revisionHistoryLimit", 10))

    def _current(self) -> list[PodView]:
        return list(self.controller.informers.pods.controlled_by(self.set["metadata"]["uid"]))

    def _by_node(self) -> dict[str, list[PodView]]:
        found: dict[str, list[PodView]] = {}
        for pod in self._current():
            node = _node_of(pod)
            if node is not None:
                found.setdefault(node, []).append(pod)
        return found

    # One pod a node

    def _manage(self) -> None:
        by_node = self._by_node()
        lacking: list[str] = []
        for node in self.wanted | self.tolerated | by_node.keys():
            pods = by_node.get(node, [])
            if node not in self.tolerated:
                for pod in pods:
                    if not pod.is_leaving:
                        delete_pod(self.api, pod)
                continue
            alive = self._drop_failed(node, pods)
            if not alive and node in self.wanted and not self._waits(node):
                lacking.append(node)
            elif len(alive) > 1:
                self._drop_surplus(alive)
        for node in sorted(lacking)[:SLICE]:
            if not self._create(node):
                return  # what keeps one pod from being made keeps the others too, mostly
        if len(lacking) > SLICE:
            self.controller.enqueue((self.namespace, self.name))

    def _drop_failed(self, node: str, pods: list[PodView]) -> list[PodView]:
        """Remove pods that failed, less and less quickly; those that remain count."""
        alive = []
        for pod in pods:
            if pod.is_leaving:
                # The next comes when this one is gone.
                alive.append(pod)
            elif pod.status.phase == "Failed":
                count, _ = self.controller.failures.get((self.set["metadata"]["uid"], node), (0, 0.0))
                wait = min(LONGEST_FAILED_BACKOFF_SECONDS, FAILED_BACKOFF_SECONDS * 2**count) if count else 0.0
                self.controller.failures[self.set["metadata"]["uid"], node] = count + 1, self.now + wait
                found = f"daemon pod {self.namespace}/{pod.metadata.name} on node {node}"
                self._event("Warning", "FailedDaemonPod", f"Found failed {found}, will try to kill it")
                delete_pod(self.api, pod)
            elif pod.status.phase == "Succeeded":
                found = f"daemon pod {self.namespace}/{pod.metadata.name} on node {node}"
                self._event("Normal", "SucceededDaemonPod", f"Found succeeded {found}, will try to delete it")
                delete_pod(self.api, pod)
            else:
                alive.append(pod)
        return alive

    def _waits(self, node: str) -> bool:
        _, until = self.controller.failures.get((self.set["metadata"]["uid"], node), (0, 0.0))
        if until > self.now:
            self.controller.enqueue((self.namespace, self.name), after=until - self.now)
        return until > self.now

    def _drop_surplus(self, alive: list[PodView]) -> None:
        """Of several the oldest stays, or one of each revision while a surge is under way."""
        staying = [pod for pod in alive if not pod.is_leaving]
        staying.sort(key=lambda pod: (pod.metadata.creation_timestamp or "", pod.metadata.name))
        groups = [staying]
        if self._surge():
            groups = [[pod for pod in staying if self._is_old(pod) is old] for old in (False, True)]
        for group in groups:
            for pod in group[1:]:
                delete_pod(self.api, pod)

    def _create(self, node: str) -> bool:
        pod = make_pod(self.spec["template"], self.set, self.namespace)
        pod["metadata"]["labels"] = {**pod["metadata"].get("labels", {}), HASH_LABEL: self.hash, **self._generation()}
        spec = pod["spec"]
        spec["tolerations"] = self.tolerations
        affinity = dict(spec.get("affinity") or {})
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        affinity["nodeAffinity"] = {**(affinity.get("nodeAffinity") or {}), **required}
        spec["affinity"] = affinity
        try:
            created = self.api.create("pods", pod, self.namespace)
        except ApiError as error:
            self._event("Warning", "FailedCreate", f"Error creating: {error}")
            self.controller.try_again((self.namespace, self.name))
            return False
        self._event("Normal", "SuccessfulCreate", f"Created pod: {created['metadata']['name']}")
        return True

    def _generation(self) -> dict[str, str]:
        annotations = self.set["metadata"].get("annotations") or {}
        text = annotations.get(TEMPLATE_GENERATION)
        return {"pod-template-generation": text} if text else {}

    # From revision to revision

    def _is_old(self, pod: PodView) -> bool:
        return bool(pod.metadata.labels.get(HASH_LABEL) != self.hash)

    def _surge(self) -> int:
        return scaled(self.rolling.get("maxSurge", 0), len(self.wanted), round_up=True)

    def _is_available(self, pod: PodView) -> bool:
        return not pod.is_leaving and pod.is_available(self.min_ready, self.now)

    def _roll(self) -> None:
        by_node = {node: [pod for pod in pods if not pod.is_terminal] for node, pods in self._by_node().items()}
        if surge := self._surge():
            self._roll_with_surge(by_node, surge)
            return
        most = max(1, scaled(self.rolling.get("maxUnavailable", 1), len(self.wanted), round_up=True))
        missing = 0
        candidates: list[PodView] = []
        for node in sorted(self.wanted):
            pods = by_node.get(node, [])
            if any(self._is_available(pod) for pod in pods):
                candidates += [pod for pod in pods if self._is_old(pod) and not pod.is_leaving]
                continue
            missing += 1
            for pod in pods:
                # One that is not available is replaced at no cost.
                if self._is_old(pod) and not pod.is_leaving:
                    delete_pod(self.api, pod)
        for pod in candidates[: max(0, most - missing)]:
            delete_pod(self.api, pod)

    def _roll_with_surge(self, by_node: dict[str, list[PodView]], surge: int) -> None:
        under_way = 0
        waiting: list[str] = []
        for node in sorted(self.wanted):
            pods = by_node.get(node, [])
            old = [pod for pod in pods if self._is_old(pod)]
            new = [pod for pod in pods if not self._is_old(pod)]
            if not old:
                continue
            if new:
                under_way += not any(self._is_available(pod) for pod in new)
                if any(self._is_available(pod) for pod in new):
                    for pod in old:
                        if not pod.is_leaving:
                            delete_pod(self.api, pod)
            elif not any(self._is_available(pod) for pod in old):
                self._create(node)
            else:
                waiting.append(node)
        for node in waiting[: max(0, surge - under_way)]:
            self._create(node)

    # What is written

    def _event(self, type_: str, reason: str, message: str) -> None:
        self.controller.context.recorder.event(self.set, type_, reason, message, self.controller.name)

    def _write_status(self) -> None:
        found = self.api.find(RESOURCE, self.namespace, self.name)
        if found is None:
            return
        before = found.get("status") or {}
        status = {"conditions": before["conditions"]} if before.get("conditions") else {}
        status |= self._counts()
        status["observedGeneration"] = found["metadata"].get("generation", 0)
        if self.collisions:
            status["collisionCount"] = self.collisions
        if status != before:
            found["status"] = status
            self.api.update(RESOURCE, found, subresource="status")

    def _counts(self) -> dict[str, int]:
        by_node = {node: [pod for pod in pods if not pod.is_terminal] for node, pods in self._by_node().items()}
        counts = dict.fromkeys(
            ("currentNumberScheduled", "numberReady", "numberAvailable", "updatedNumberScheduled"), 0
        )
        for node in self.wanted:
            pods = sorted(by_node.get(node, ()), key=lambda pod: pod.metadata.creation_timestamp or "")
            counts["currentNumberScheduled"] += bool(pods)
            counts["numberReady"] += any(pod.is_ready for pod in pods)
            counts["numberAvailable"] += any(self._is_available(pod) for pod in pods)
            counts["updatedNumberScheduled"] += any(not self._is_old(pod) for pod in pods)
            self._look_again(pods)
        shown = {
            "desiredNumberScheduled": len(self.wanted),
            "currentNumberScheduled": counts["currentNumberScheduled"],
            "numberMisscheduled": sum(bool(pods) for node, pods in by_node.items() if node not in self.wanted),
            "numberReady": counts["numberReady"],
        }
        missing = len(self.wanted) - counts["numberAvailable"]
        more = {
            "numberAvailable": counts["numberAvailable"],
            "updatedNumberScheduled": counts["updatedNumberScheduled"],
            "numberUnavailable": missing,
        }
        return shown | {name: count for name, count in more.items() if count}

    def _look_again(self, pods: list[PodView]) -> None:
        for pod in pods:
            if self.min_ready and pod.ready_since is not None and pod.ready_since + self.min_ready > self.now:
                wait = pod.ready_since + self.min_ready - self.now + 0.01
                self.controller.enqueue((self.namespace, self.name), after=wait)


def _without_no_schedule(node: Node) -> Node:
    kept = [taint for taint in node.spec.taints or () if taint.effect == "NoExecute"]
    return msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, taints=kept))


def _node_of(pod: PodView) -> str | None:
    """The node that a daemon's pod is on, or is meant for."""
    if pod.spec.node_name:
        return pod.spec.node_name
    affinity = (pod.spec.affinity or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field["key"] == "metadata.name" and field.get("values"):
                return str(field["values"][0])
    return None
