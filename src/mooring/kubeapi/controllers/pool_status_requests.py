"""ResourcePoolStatusRequests: how many devices the pools of a driver have, and how many of them are taken.

A request is answered once, from the slices and claims of that moment, and removed some time later.
"""

from mooring.kubeapi.controllers.conditions import find_condition, set_condition
from mooring.kubeapi.controllers.controller import Controller, Key, Object
from mooring.kubeapi.controllers.device_pools import Pool, pools_of
from mooring.kubeapi.status import ApiError
from mooring.model.api.meta import timestamp_seconds

RESOURCE = "resourcepoolstatusrequests.resource.k8s.io"
SLICES, CLAIMS = "resourceslices.resource.k8s.io", "resourceclaims.resource.k8s.io"
TAINT_RULES = "devicetaintrules.resource.k8s.io"
USUAL_LIMIT = 100
ANSWERED_SECONDS, PENDING_SECONDS = 3600.0, 86400.0
"""How long a request stays after its answer, and without one: as in Kubernetes."""


class PoolStatusRequests(Controller):
    """Answers ResourcePoolStatusRequests."""

    name = "resourcepoolstatusrequest-controller"

    def start(self) -> None:
        self._slices, self._claims = self.informers.of(SLICES), self.informers.of(CLAIMS)
        self._rules = self.informers.of(TAINT_RULES)
        self.follow(RESOURCE)

    def sync(self, key: Key) -> None:
        request = self.api.find(RESOURCE, *key)
        if request is None or self._is_over(request):
            return
        if request.get("status"):
            return
        pools = pools_of(request["spec"]["driver"], list(self._slices.list()), request["spec"].get("poolName"))
        if any(pool.is_incomplete for pool in pools):
            self.try_again(key)  # the driver is still writing its slices
            return
        request["status"] = self._answer(request["spec"], pools)
        self.api.update(RESOURCE, request, subresource="status")

    def _is_over(self, request: Object) -> bool:
        """Whether the time of a request is over; it is removed then."""
        about = request["metadata"]
        since, stays = about["creationTimestamp"], PENDING_SECONDS
        if status := request.get("status"):
            complete = find_condition(status, "Complete") or {}
            since, stays = complete.get("lastTransitionTime") or since, ANSWERED_SECONDS
        wait = (timestamp_seconds(since) or self.now) + stays - self.now
        if wait > 0:
            self.enqueue(("", about["name"]), after=wait)
            return False
        try:
            self.api.delete(RESOURCE, None, about["name"], uid=about["uid"])
        except ApiError as error:
            if error.code not in (404, 409):
                raise
        return True

    def _answer(self, spec: Object, pools: list[Pool]) -> Object:
        claims, rules = list(self._claims.list()), list(self._rules.list())
        limit = spec.get("limit") or USUAL_LIMIT
        default = spec.get("defaultPartitionTypeAttribute")
        shown = [pool.status(claims, rules, default) for pool in pools[:limit]]
        status: Object = {"poolCount": len(pools), "pools": shown}
        wrong = sum("validationError" in pool for pool in shown)
        message = f"Calculated status for {len(shown)} pools" + (f" ({wrong} incomplete)" if wrong else "")
        set_condition(status, "Complete", "True", self.now, reason="CalculationComplete", message=message)
        return status
