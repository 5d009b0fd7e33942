"""The status of ResourceQuotas: what they allow, and what is used of it."""

from mooring.kubeapi.admission.quota import ResourceQuotas
from mooring.kubeapi.controllers.context import Context
from mooring.kubeapi.controllers.controller import Controller, Key, Object
from mooring.kubeapi.store.records import Event


class ResourceQuotaStatus(Controller):
    """Writes what admission's ledger says. The key is a quota's."""

    name = "resourcequota-controller"

    def __init__(self, context: Context, ledger: ResourceQuotas) -> None:
        super().__init__(context)
        self._ledger = ledger

    def start(self) -> None:
        self._quotas = self.informers.of("resourcequotas")
        self._quotas.on_change(lambda old, new: self._changed(new))
        self.api.store.observe(None, self._observe)

    def _changed(self, new: Object | None) -> None:
        if new is not None:
            self.enqueue((new["metadata"]["namespace"], new["metadata"]["name"]))

    def _observe(self, event: Event) -> None:
        if event.table in ("events", "resourcequotas") or not event.namespace:
            return
        for quota in self._quotas.list(event.namespace):
            self.enqueue((event.namespace, quota["metadata"]["name"]))

    def sync(self, key: Key) -> None:
        quota = self.api.find("resourcequotas", *key)
        if quota is None:
            return
        used = self._ledger.used(key[0]).get(key[1])
        if used is None:
            return
        status = {"hard": quota["spec"].get("hard") or {}, "used": used}
        if status != quota.get("status"):
            quota["status"] = status
            self.api.update("resourcequotas", quota, subresource="status")
