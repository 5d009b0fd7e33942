"""What all controllers share: the API, the informers, the runner, the clock, and a way to tell people what happened."""

from collections.abc import Callable
from typing import Any

import msgspec

from mooring.kubeapi.api import Api
from mooring.kubeapi.controllers.controller import Runner
from mooring.kubeapi.controllers.informers import Informer, decode_object
from mooring.kubeapi.controllers.pods import PodView
from mooring.kubeapi.controllers.recorder import Recorder

Object = dict[str, Any]


class Informers:
    """One informer a resource, made when somebody asks for it first."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._made: dict[str, Informer[Object]] = {}
        self.pods: Informer[PodView] = Informer(api, "pods", msgspec.json.Decoder(PodView).decode)
        self._by_node: dict[str, dict[tuple[str, str], None]] = {}
        self.pods.on_change(self._index)

    def pods_on(self, node: str) -> list[PodView]:
        """The pods that are bound to a node."""
        found = (self.pods.get(*key) for key in self._by_node.get(node, ()))
        return [pod for pod in found if pod is not None]

    def _index(self, old: PodView | None, new: PodView | None) -> None:
        before, after = old.spec.node_name if old else "", new.spec.node_name if new else ""
        if before == after:
            return
        if old is not None and before:
            pods = self._by_node[before]
            pods.pop(old.key, None)
            if not pods:
                del self._by_node[before]
        if new is not None and after:
            self._by_node.setdefault(after, {})[new.key] = None

    def of(self, resource: str) -> Informer[Object]:
        found = self._made.get(resource)
        if found is None:
            found = self._made[resource] = Informer(self._api, resource, decode_object)
        return found


class Context:
    """Passed to every controller. `now` is the only clock that they have."""

    def __init__(self, api: Api, now: Callable[[], float], *, root_certificate: str = "") -> None:
        """`root_certificate` is what pods are to trust the API server by, in PEM."""
        self.api, self.now = api, now
        self.runner = Runner(now)
        self.informers = Informers(api)
        self.recorder = Recorder(api, now)
        self.root_certificate = root_certificate
