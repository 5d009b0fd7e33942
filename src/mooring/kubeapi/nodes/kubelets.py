"""The kubelets of all simulated nodes: each pod that is bound to one lives, and its status is written as it changes."""

import math
from typing import Any

from mooring.kubeapi.controllers.context import Context
from mooring.kubeapi.controllers.controller import Controller, Key, Object
from mooring.kubeapi.controllers.pods import PodView
from mooring.kubeapi.nodes.addresses import PodAddresses
from mooring.kubeapi.nodes.allotment import Allotments
from mooring.kubeapi.nodes.container_events import MOST_PODS, ContainerEvents, seen_of
from mooring.kubeapi.nodes.gang_restarts import ATTEMPT, GangRestarts
from mooring.kubeapi.nodes.registration import failure_of, is_simulated
from mooring.kubeapi.nodes.resizes import Resizes, Resizing
from mooring.kubeapi.nodes.volumes import missing_volume
from mooring.kubeapi.status import ApiError
from mooring.kubeapi.store.records import Record
from mooring.model.api.meta import timestamp_seconds
from mooring.model.kubelet.distributions import Distribution
from mooring.model.kubelet.life import PodLife
from mooring.model.kubelet.plan import Timings, plan_of, unreadable_times
from mooring.model.kubelet.status import status_of
from mooring.model.kubelet.usage import unreadable_usage

COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
RETRY_VOLUMES_SECONDS = 1.0
USUAL_TIMINGS = Timings(stop=Distribution(0.5))
"""Everything at once but the end: who deletes a pod gracefully may look at it once more."""


class Kubelets(Controller):
    """Lets the pods of simulated nodes live. The key is a pod's."""

    name = "kubelet"

    def __init__(self, context: Context, *, timings: Timings = USUAL_TIMINGS, seed: int = 0) -> None:
        super().__init__(context)
        self._timings, self._seed = timings, seed
        self._lives: dict[str, PodLife] = {}
        self._addresses = PodAddresses()
        self._allotments = Allotments()
        self._resizes = Resizes(self._allotments)
        self._gangs = GangRestarts()
        self._deferred: dict[str, dict[str, tuple[int, float, Key]]] = {}
        """By node and uid, the pods whose new amounts have no room yet: their priority (negative), since when, key."""
        self._images: dict[str, set[str]] = {}
        self._container_events = ContainerEvents(context.recorder)

    def start(self) -> None:
        self._nodes = self.informers.of("nodes")
        for pod in self.informers.pods.list():
            if pod.status.pod_ip:
                self._addresses.keep(pod.metadata.uid, pod.status.pod_ip)
        self.informers.pods.on_change(self._pod_changed)
        self._nodes.on_change(self._node_changed)

    def _pod_changed(self, old: PodView | None, new: PodView | None) -> None:
        if new is None:
            if old is not None:
                self._forget(old.metadata.uid, old.spec.node_name)
            return
        if old is not None and old.metadata.uid != new.metadata.uid:
            self._forget(old.metadata.uid, old.spec.node_name)
        if not new.spec.node_name:
            return
        known = old is not None and new.metadata.uid in self._lives
        if known and old is not None and self._is_told_nothing(old, new):
            return
        self.enqueue(new.key)

    @staticmethod
    def _is_told_nothing(old: PodView, new: PodView) -> bool:
        """Whether a change is one that the kubelet itself made, or need not know of."""
        return (
            old.metadata.generation == new.metadata.generation
            and old.metadata.deletion_timestamp == new.metadata.deletion_timestamp
            and not new.spec.readiness_gates
            and not (new.is_terminal and not old.is_terminal)
            and new.metadata.finalizers == old.metadata.finalizers
        )

    def _forget(self, uid: str, node: str) -> None:
        self._lives.pop(uid, None)
        self._addresses.give_back(uid)
        self._allotments.forget(node, uid)
        self._resizes.forget(uid)
        self._gangs.leave(uid)
        self._deferred.get(node, {}).pop(uid, None)
        self._try_deferred(node)

    def _try_deferred(self, node: str) -> None:
        """Something left a node or became smaller there: resizes that wait for room are tried again, urgent ones first,
        then those that have waited longest."""
        for _, _, key in sorted(self._deferred.get(node, {}).values()):
            self.enqueue(key)

    def _go_on_with_resize(self, life: PodLife, pod: Object, node: Object) -> Resizing:
        """Carry a pod's resize on; once it is granted, what it gave up may serve others."""
        if life.is_over:
            return Resizing()
        metadata, name = pod["metadata"], node["metadata"]["name"]
        found = self._resizes.look(node, pod, self.now)
        key = (metadata["namespace"], metadata["name"])
        waiting = self._deferred.setdefault(name, {}) if found.is_deferred else self._deferred.get(name, {})
        if found.is_deferred:
            since = waiting.get(metadata["uid"], (0, self.now))[1]
            waiting[metadata["uid"]] = (-(pod["spec"].get("priority") or 0), since, key)
        else:
            waiting.pop(metadata["uid"], None)
        if found.was_granted:
            self._try_deferred(name)
        for container in found.restarts:
            life.restart(container, self.now)
        if found.due < math.inf:
            self.enqueue(key, after=max(0.0005, found.due - self.now))
        if len(self._lives) <= MOST_PODS:
            for reason, message in found.events:
                self._container_events.tell_of_resize(pod, reason, message)
        return found

    def _node_changed(self, old: Object | None, new: Object | None) -> None:
        """A node that comes back takes its pods up again; those of one that lost power have ended meanwhile."""
        if new is None or not is_simulated(new):
            return
        if old is None or (failure_of(old) and not failure_of(new)):
            name = new["metadata"]["name"]
            self._images.setdefault(name, _images_of(new))
            for pod in self.informers.pods_on(name):
                life = self._lives.get(pod.metadata.uid)
                if life is not None and old is not None and failure_of(old) == "crash":
                    life.crash(self.now)
                self.enqueue(pod.key)

    def sync(self, key: Key) -> None:
        view = self.informers.pods.get(*key)
        if view is None or not view.spec.node_name:
            return
        node = self._nodes.get("", view.spec.node_name)
        if node is None or not is_simulated(node) or failure_of(node):
            return
        record = self.api.record("pods", *key)
        pod = record.decode()
        if view.is_terminal and view.metadata.uid not in self._lives:
            self._remove_if_asked(pod)
            return
        life = self._lives.get(view.metadata.uid) or self._begin(record, pod, node)
        if life is None:
            return
        is_in_gang = self._gangs.join(pod)
        failures = life.failures
        if len(self._lives) > MOST_PODS:
            self._follow(life, pod, view)
        else:
            before = seen_of(life)
            self._follow(life, pod, view)
            self._container_events.tell(pod, before, life)
        is_news = is_in_gang and self._restart_with_gang(life, pod, has_failed=life.failures > failures)
        self._write(life, record, pod, node, is_news=is_news)
        if life.next_at < math.inf:
            self.enqueue(key, after=max(0.0005, life.next_at - self.now))

    def _begin(self, record: Record, pod: Object, node: Object) -> PodLife | None:
        """Take a pod on, once its volumes are there."""
        metadata = pod["metadata"]
        name = node["metadata"]["name"]
        if "deletionTimestamp" not in metadata and missing_volume(self.api, pod):
            self.enqueue((metadata["namespace"], metadata["name"]), after=RETRY_VOLUMES_SECONDS)
            if (pod.get("status") or {}).get("startTime"):
                return None
            waiting = PodLife(plan_of(pod, self._timings), identity=metadata["uid"], at=math.inf)
            waiting.started_at = self.now
            self._write(waiting, record, pod, node, writes_address=False)
            return None
        index = (metadata.get("annotations") or {}).get(COMPLETION_INDEX, "0")
        life = PodLife(
            plan_of(pod, self._timings),
            identity=metadata["uid"],
            at=timestamp_seconds((pod.get("status") or {}).get("startTime")) or self.now,
            seed=self._seed,
            index=int(index) if index.isdecimal() else 0,
            images=self._images.setdefault(name, set()),
        )
        self._lives[metadata["uid"]] = life
        for complaint in (*unreadable_times(pod), *unreadable_usage(pod)):
            self._container_events.warn(pod, "UnreadableAnnotation", complaint)
        refusal = self._allotments.admit(node, pod)
        if refusal is not None and "deletionTimestamp" not in metadata:
            life.reject(*refusal)
            self._container_events.warn(pod, *refusal)
        return life

    def _follow(self, life: PodLife, pod: Object, view: PodView) -> None:
        life.advance(self.now)
        metadata = pod["metadata"]
        if "deletionTimestamp" in metadata:
            ends_at = timestamp_seconds(metadata["deletionTimestamp"]) or self.now
            # Whole seconds are written: what is left of the first one is not taken away.
            grace = metadata.get("deletionGracePeriodSeconds") or 0
            if not life.is_stopping and len(self._lives) <= MOST_PODS:
                self._container_events.tell_stopping(pod, life)
            life.stop(self.now, max(0.0, min(float(grace), ends_at + 1 - self.now)) if grace else 0.0)
            life.advance(self.now)
        elif view.is_terminal and not life.is_over:
            life.stop(self.now, 0.0)
            life.advance(self.now)

    def _restart_with_gang(self, life: PodLife, pod: Object, *, has_failed: bool) -> bool:
        """A rank that failed takes its gang with it; one that is behind its gang begins anew where it is.

        Return whether that is to be written to the pod.
        """
        metadata = pod["metadata"]
        uid = metadata["uid"]
        if not life.is_over and self._gangs.is_behind(uid):
            life.restart_all(self.now)
        elif has_failed and "deletionTimestamp" not in metadata:
            for key in self._gangs.failed(uid):
                self.enqueue(key)
        attempt = str(self._gangs.attempt(uid))
        annotations = metadata.get("annotations") or {}
        if annotations.get(ATTEMPT) == attempt:
            return False
        metadata["annotations"] = {**annotations, ATTEMPT: attempt}
        return True

    def _write(
        self,
        life: PodLife,
        record: Record,
        pod: Object,
        node: Object,
        writes_address: bool = True,
        is_news: bool = False,
    ) -> None:
        host_ip = _address_of(node)
        on_host = pod["spec"].get("hostNetwork")
        pod_ip = host_ip if on_host else self._addresses.of(pod["metadata"]["uid"])
        resizing = self._go_on_with_resize(life, pod, node)
        status = status_of(
            life,
            pod,
            self.now,
            host_ip=host_ip,
            pod_ip=pod_ip,
            allocated=resizing.allocated,
            actual=resizing.actual,
            resize=resizing.conditions,
        )
        if not writes_address and not on_host:
            status.pop("podIP", None), status.pop("podIPs", None)
            status["conditions"] = [_not_yet(one) for one in status["conditions"]]
        if life.is_over:
            self._allotments.forget(node["metadata"]["name"], pod["metadata"]["uid"])
        if is_news or status != pod.get("status"):
            pod["status"] = status
            # Nobody has to look over what a kubelet writes; there are a great many of these.
            self.api.write(self.api.registry.find("pods"), record, pod)
        if life.is_over:
            self._remove_if_asked(pod)

    def _remove_if_asked(self, pod: Object) -> None:
        """Take a deleted pod away once nothing of it runs: this one, and no other of its name."""
        metadata = pod["metadata"]
        if "deletionTimestamp" not in metadata:
            return
        if metadata.get("finalizers") and not metadata.get("deletionGracePeriodSeconds"):
            return
        try:
            self.api.delete("pods", metadata["namespace"], metadata["name"], uid=metadata["uid"], grace_period=0)
        except ApiError as error:
            if error.code not in (404, 409):
                raise


def _not_yet(condition: Object) -> Object:
    if condition["type"] == "PodReadyToStartContainers":
        return {**condition, "status": "False"}
    return condition


def _address_of(node: Object) -> str:
    addresses: list[dict[str, Any]] = (node.get("status") or {}).get("addresses") or []
    return next((one.get("address", "") for one in addresses if one.get("type") == "InternalIP"), "127.0.0.1")


def _images_of(node: Object) -> set[str]:
    return {name for image in (node.get("status") or {}).get("images") or () for name in image.get("names") or ()}
