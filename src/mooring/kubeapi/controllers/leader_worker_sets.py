"""LeaderWorkerSets: groups of a leader and its workers, which come, are renewed and go as a whole.

The pods are the set's own: the StatefulSets that its controller puts in between elsewhere are left out.
"""

import msgspec

from mooring.kubeapi.controllers.conditions import set_condition
from mooring.kubeapi.controllers.controller import Controller, Key, Object
from mooring.kubeapi.controllers.ownership import owner_reference
from mooring.kubeapi.controllers.pods import PodView, delete_pod, pod_document
from mooring.kubeapi.controllers.rollouts import scaled
from mooring.kubeapi.controllers.slices import MOST_MEMBERS, SLICE, at_most
from mooring.kubeapi.controllers.template_hash import template_hash
from mooring.kubeapi.status import ApiError
from mooring.model.gangs.dialects.lws import LEADER_READY, RECREATE, LeaderWorkerSet
from mooring.model.gangs.dialects.lws_pods import expand_leader_worker_set
from mooring.model.gangs.membership import LWS_GROUP_INDEX, LWS_NAME, LWS_WORKER_INDEX

RESOURCE = "leaderworkersets.leaderworkerset.x-k8s.io"
REVISION = "leaderworkerset.sigs.k8s.io/template-revision-hash"


class LeaderWorkerSets(Controller):
    """Makes the pods of LeaderWorkerSets."""

    name = "lws-controller"

    def start(self) -> None:
        self.follow(RESOURCE)
        self.follow_controlled(self.informers.pods, "LeaderWorkerSet")

    def sync(self, key: Key) -> None:
        found = self.api.find(RESOURCE, *key)
        if found is not None and "deletionTimestamp" not in found["metadata"]:
            _Turn(self, found).run()


class _Turn:
    """One look at one LeaderWorkerSet."""

    def __init__(self, controller: LeaderWorkerSets, found: Object) -> None:
        self.controller, self.api = controller, controller.api
        self.set, self.spec = found, found["spec"]
        self.typed = msgspec.convert(found, LeaderWorkerSet)
        self.hash = template_hash(self.spec["leaderWorkerTemplate"])
        self.groups: dict[int, list[PodView]] = {}
        for pod in controller.informers.pods.controlled_by(found["metadata"]["uid"]):
            self.groups.setdefault(_index(pod), []).append(pod)

    def run(self) -> None:
        self._keep_service()
        for index, pods in self.groups.items():
            if index >= self.typed.spec.replicas or self._is_broken(pods):
                self._remove(pods)
        self._roll()
        self._create()
        self._write()

    def _keep_service(self) -> None:
        metadata = self.set["metadata"]
        if self.api.find("services", metadata["namespace"], metadata["name"]) is None:
            spec = {"clusterIP": "None", "selector": {LWS_NAME: metadata["name"]}, "publishNotReadyAddresses": True}
            service = {
                "metadata": {"name": metadata["name"], "ownerReferences": [owner_reference(self.set)]},
                "spec": spec,
            }
            self.api.create("services", service, metadata["namespace"])

    def _remove(self, pods: list[PodView]) -> None:
        for pod in pods:
            if not pod.is_leaving:
                delete_pod(self.api, pod)

    def _is_broken(self, pods: list[PodView]) -> bool:
        """A group that lost a member, or of which one was started again, is made anew where the policy says so."""
        if self.typed.spec.leader_worker_template.restart_policy not in (
            RECREATE,
            "RecreateGroupAfterStart",
            "Default",
        ):
            return any(pod.is_terminal for pod in pods)
        return any(pod.is_leaving or pod.is_terminal or pod.restarts for pod in pods)

    def _is_ready(self, pods: list[PodView]) -> bool:
        return len(pods) == self.typed.size and all(pod.is_ready and not pod.is_leaving for pod in pods)

    def _is_old(self, pods: list[PodView]) -> bool:
        return any(pod.metadata.labels.get(REVISION) != self.hash for pod in pods)

    def _roll(self) -> None:
        """Renew groups of an older template from the last on, as many at a time as may be missing."""
        rolling = (self.spec.get("rolloutStrategy") or {}).get("rollingUpdateConfiguration") or {}
        replicas = self.typed.spec.replicas
        most = max(1, scaled(rolling.get("maxUnavailable", 1), replicas, round_up=False))
        ready = sum(self._is_ready(pods) for index, pods in self.groups.items() if 0 <= index < replicas)
        missing = replicas - ready
        for index in sorted(self.groups, reverse=True):
            pods = self.groups[index]
            if index < int(rolling.get("partition") or 0) or index >= replicas or not self._is_old(pods):
                continue
            if any(pod.is_leaving for pod in pods):
                continue
            is_ready = self._is_ready(pods)
            if is_ready and missing >= most:
                return
            self._remove(pods)
            missing += is_ready

    def _create(self) -> None:
        total = self.typed.spec.replicas * self.typed.size
        if at_most(self.controller, self.set, total, MOST_MEMBERS) < total:
            return
        current = {pod.metadata.name: pod for pod in self._current()}
        going = {_index(pod) for pod in current.values() if pod.is_leaving}
        count = 0
        template = self.spec["leaderWorkerTemplate"]
        waits_for_leader = self.typed.spec.startup_policy == LEADER_READY
        for made in expand_leader_worker_set(self.typed, {}):
            labels = made.metadata.labels or {}
            leader = current.get(f"{self.set['metadata']['name']}-{labels[LWS_GROUP_INDEX]}")
            is_leader = labels[LWS_WORKER_INDEX] == "0"
            # A group comes back when all of it is gone.
            if made.metadata.name in current or int(labels[LWS_GROUP_INDEX]) in going:
                continue
            if not is_leader and waits_for_leader and (leader is None or not leader.is_ready):
                continue
            if count == SLICE:
                self.controller.enqueue((self.set["metadata"]["namespace"], self.set["metadata"]["name"]))
                return
            count += 1
            raw = template.get("leaderTemplate") if is_leader else None
            document = pod_document(raw or template["workerTemplate"], made)
            document["metadata"]["labels"][REVISION] = self.hash
            document["spec"] |= {"hostname": made.metadata.name, "subdomain": self.set["metadata"]["name"]}
            self._add_environment(document, int(labels[LWS_GROUP_INDEX]))
            try:
                self.api.create("pods", document, made.metadata.namespace)
            except ApiError as error:
                if error.code != 409:
                    self._event("Warning", "FailedCreate", f"Error creating: {error}")
                    raise

    def _add_environment(self, document: Object, index: int) -> None:
        """What a worker needs to find its leader."""
        metadata = self.set["metadata"]
        leader = f"{metadata['name']}-{index}.{metadata['name']}.{metadata['namespace']}"
        given = {"LWS_LEADER_ADDRESS": leader, "LWS_GROUP_SIZE": str(self.typed.size)}
        given["LWS_WORKER_INDEX"] = document["metadata"]["labels"][LWS_WORKER_INDEX]
        for container in (*document["spec"]["containers"], *(document["spec"].get("initContainers") or ())):
            added = [{"name": name, "value": value} for name, value in given.items()]
            container["env"] = [*added, *(container.get("env") or ())]

    def _current(self) -> list[PodView]:
        return list(self.controller.informers.pods.controlled_by(self.set["metadata"]["uid"]))

    def _write(self) -> None:
        groups: dict[int, list[PodView]] = {}
        for pod in self._current():
            groups.setdefault(_index(pod), []).append(pod)
        ready = [index for index, pods in groups.items() if self._is_ready(pods)]
        updated = [index for index, pods in groups.items() if not self._is_old(pods)]
        before = self.set.get("status") or {}
        status: Object = {"conditions": [dict(one) for one in before.get("conditions") or ()]}
        status |= {
            "replicas": len(groups),
            "readyReplicas": len(ready),
            "updatedReplicas": len(updated),
            "observedGeneration": self.set["metadata"].get("generation", 0),
            "hpaPodSelector": f"{LWS_NAME}={self.set['metadata']['name']},{LWS_WORKER_INDEX}=0",
        }
        is_available = len(ready) == self.typed.spec.replicas and len(updated) == self.typed.spec.replicas
        said = (
            ("AllGroupsReady", "All replicas are ready")
            if is_available
            else ("GroupsProgressing", "Replicas are progressing")
        )
        now = self.controller.now
        for type_, value in (("Available", is_available), ("Progressing", not is_available)):
            set_condition(status, type_, "True" if value else "False", now, reason=said[0], message=said[1])
        if status != before:
            fresh = self.api.find(RESOURCE, self.set["metadata"]["namespace"], self.set["metadata"]["name"])
            if fresh is not None:
                fresh["status"] = status
                self.api.update(RESOURCE, fresh, subresource="status")

    def _event(self, type_: str, reason: str, message: str) -> None:
        self.controller.context.recorder.event(self.set, type_, reason, message, self.controller.name)


def _index(pod: PodView) -> int:
    text = pod.metadata.labels.get(LWS_GROUP_INDEX, "0")
    return int(text) if text.isdecimal() else 0
