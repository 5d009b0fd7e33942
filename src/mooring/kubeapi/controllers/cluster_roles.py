"""ClusterRoles that are made of others: their rules are those of the roles that they select."""

import msgspec

from mooring.kubeapi.controllers.controller import Controller, Key, Object
from mooring.kubeapi.selectors import selects

RESOURCE = "clusterroles.rbac.authorization.k8s.io"
encode = msgspec.json.Encoder(order="sorted").encode


class ClusterRoleAggregation(Controller):
    """Writes the rules of aggregated ClusterRoles. A change of one of these brings the next: aggregation goes as deep
    as roles select each other."""

    name = "clusterrole-aggregation-controller"

    def start(self) -> None:
        self._roles = self.informers.of(RESOURCE)
        self._roles.on_change(self._changed)

    def _changed(self, _old: Object | None, _new: Object | None) -> None:
        for role in self._roles.list():
            if role.get("aggregationRule"):
                self.enqueue(("", role["metadata"]["name"]))

    def sync(self, key: Key) -> None:
        role = self._roles.get(*key)
        if role is None or not role.get("aggregationRule"):
            return
        rules: dict[bytes, Object] = {}
        for other in sorted(self._roles.list(), key=lambda each: str(each["metadata"]["name"])):
            labels = other["metadata"].get("labels") or {}
            selectors = role["aggregationRule"].get("clusterRoleSelectors") or ()
            if other["metadata"]["name"] != key[1] and any(selects(selector, labels) for selector in selectors):
                rules |= {encode(rule): rule for rule in other.get("rules") or ()}
        current = self.api.get(RESOURCE, None, key[1])
        if (current.get("rules") or []) != list(rules.values()):
            self.api.update(RESOURCE, {**current, "rules": list(rules.values())})
