"""PodDisruptionBudgets: how many of the pods that they protect may go at the moment."""

from mooring.kubeapi.controllers.conditions import set_condition
from mooring.kubeapi.controllers.controller import Controller, Key, Object
from mooring.kubeapi.controllers.ownership import selector_of
from mooring.kubeapi.controllers.pods import PodView
from mooring.kubeapi.controllers.rollouts import scaled
from mooring.kubeapi.status import ApiError
from mooring.model.api.meta import timestamp_seconds

RESOURCE = "poddisruptionbudgets.policy"
DELETION_SECONDS = 120.0
"""How long an eviction that was allowed counts before the pod is seen to go."""


class UnmanagedPods(Exception):
    """Pods of which nobody says how many there should be."""


class Disruption(Controller):
    """Writes the status of PodDisruptionBudgets."""

    name = "disruption-controller"

    def start(self) -> None:
        self._budgets = self.informers.of(RESOURCE)
        self._budgets.on_change(lambda old, new: self._budget_changed(old, new))
        self.informers.pods.on_change(self._pod_changed)
        for resource in ("replicasets.apps", "replicationcontrollers", "statefulsets.apps", "deployments.apps"):
            self.informers.of(resource).on_change(self._workload_changed)

    def _budget_changed(self, old: Object | None, new: Object | None) -> None:
        if new is not None:
            self.enqueue((new["metadata"]["namespace"], new["metadata"]["name"]))

    def _pod_changed(self, old: PodView | None, new: PodView | None) -> None:
        for pod in (old, new):
            if pod is not None and pod.metadata.labels:
                self._enqueue_protectors(pod)

    def _enqueue_protectors(self, pod: PodView) -> None:
        for budget in list(self._budgets.list(pod.metadata.namespace)):
            if selector_of(budget["spec"].get("selector")).matches(pod.metadata.labels):
                self.enqueue((pod.metadata.namespace, budget["metadata"]["name"]))

    def _workload_changed(self, old: Object | None, new: Object | None) -> None:
        """A workload that is scaled changes how many pods there should be."""
        found = new or old
        if found is not None and old is not None and old["spec"].get("replicas") != found["spec"].get("replicas"):
            for budget in list(self._budgets.list(found["metadata"]["namespace"])):
                self.enqueue((found["metadata"]["namespace"], budget["metadata"]["name"]))

    def sync(self, key: Key) -> None:
        budget = self.api.find(RESOURCE, *key)
        if budget is None:
            return
        selector = selector_of(budget["spec"].get("selector"))
        pods = [
            pod
            for pod in self.informers.pods.list(key[0])
            if selector.matches(pod.metadata.labels) and not pod.is_terminal
        ]
        status = dict(budget.get("status") or {})
        status["conditions"] = [dict(one) for one in status.get("conditions") or ()]
        try:
            expected, desired = self._expected(budget, pods)
        except UnmanagedPods as error:
            self._fail(budget, status, str(error))
            return
        disrupted = self._disrupted(status, pods)
        if disrupted:
            self.enqueue(key, after=DELETION_SECONDS)
        healthy = [pod for pod in pods if pod.is_ready and not pod.is_leaving and pod.metadata.name not in disrupted]
        allowed = max(0, len(healthy) - desired) if expected > 0 else 0
        status |= {
            "currentHealthy": len(healthy),
            "desiredHealthy": desired,
            "expectedPods": expected,
            "disruptionsAllowed": allowed,
            "observedGeneration": budget["metadata"].get("generation", 0),
        }
        status.pop("disruptedPods", None)
        if disrupted:
            status["disruptedPods"] = disrupted
        self._say(budget, status, allowed)
        self._write(budget, status)

    def _say(self, budget: Object, status: Object, allowed: int) -> None:
        value, reason = ("True", "SufficientPods") if allowed > 0 else ("False", "InsufficientPods")
        generation = budget["metadata"].get("generation", 0)
        set_condition(
            status, "DisruptionAllowed", value, self.now, reason=reason, message="", observedGeneration=generation
        )

    def _fail(self, budget: Object, status: Object, message: str) -> None:
        self.context.recorder.event(
            budget,
            "Warning",
            "CalculateExpectedPodCountFailed",
            f"Failed to calculate the number of expected pods: {message}",
            "controllermanager",
        )
        generation = budget["metadata"].get("generation", 0)
        status["disruptionsAllowed"] = 0
        status["observedGeneration"] = generation
        for field in ("currentHealthy", "desiredHealthy", "expectedPods"):
            status.setdefault(field, 0)
        set_condition(
            status,
            "DisruptionAllowed",
            "False",
            self.now,
            reason="SyncFailed",
            message=message,
            observedGeneration=generation,
        )
        self._write(budget, status)

    def _write(self, budget: Object, status: Object) -> None:
        if status != (budget.get("status") or {}):
            budget["status"] = status
            self.api.update(RESOURCE, budget, subresource="status")

    def _disrupted(self, status: Object, pods: list[PodView]) -> dict[str, str]:
        """Evictions that were allowed and have not been seen yet."""
        by_name = {pod.metadata.name: pod for pod in pods}
        kept = {}
        for name, moment in (status.get("disruptedPods") or {}).items():
            pod = by_name.get(name)
            since = timestamp_seconds(moment) or 0.0
            if pod is not None and not pod.is_leaving and since + DELETION_SECONDS > self.now:
                kept[name] = moment
        return kept

    def _expected(self, budget: Object, pods: list[PodView]) -> tuple[int, int]:
        """How many pods there should be, and how many of them have to stay."""
        spec = budget["spec"]
        most, least = spec.get("maxUnavailable"), spec.get("minAvailable")
        if most is not None:
            expected = self._declared(pods)
            return expected, max(0, expected - scaled(most, expected, round_up=True))
        if isinstance(least, str):
            expected = self._declared(pods)
            return expected, scaled(least, expected, round_up=True)
        return len(pods), int(least or 0)

    def _declared(self, pods: list[PodView]) -> int:
        """What the controllers of the pods say, each once."""
        scales: dict[str, int] = {}
        for pod in pods:
            owner = pod.metadata.controller
            if owner is None:
                raise UnmanagedPods(f'found no controller ref for pod "{pod.metadata.name}"')
            if owner["uid"] not in scales:
                scales[owner["uid"]] = self._scale(pod.metadata.namespace, owner)
        return sum(scales.values())

    def _scale(self, namespace: str, owner: Object) -> int:
        try:
            resource = self.api.registry.of_kind(owner["apiVersion"], owner["kind"])
            found = self.api.find(resource, namespace, owner["name"])
        except ApiError:
            found, resource = None, None
        if found is None or resource is None:
            return 0
        if resource.key == "replicasets.apps":
            above = next((one for one in found["metadata"].get("ownerReferences") or () if one.get("controller")), None)
            if above is not None and above["kind"] == "Deployment":
                return self._scale(namespace, above)
        replicas = (found.get("spec") or {}).get("replicas")
        if replicas is None:
            raise UnmanagedPods(f"{owner['apiVersion']}/{owner['kind']} does not implement the scale subresource")
        return int(replicas)
