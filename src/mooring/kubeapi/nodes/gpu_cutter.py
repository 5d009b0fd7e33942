"""The agent of simulated nodes whose GPUs are cut on demand: they offer the instances that they were told to cut."""

from collections import Counter

from mooring.kubeapi.controllers.controller import Controller, Key, Object
from mooring.kubeapi.nodes.registration import failure_of, is_simulated
from mooring.model.devices.dialects.device_plugin import PARTITIONING, SPEC
from mooring.model.devices.mig import PREFIX

_NOTHING: tuple[Counter[str], str] = Counter(), ""


class GpuCutter(Controller):
    """Carries out what a scheduler writes into the annotations of a node. `nvidia.com/gpu` stays as it is: it says how
    many GPUs the node has, and the scheduler knows which of them are cut."""

    name = "gpu-cutter"

    def start(self) -> None:
        self.informers.of("nodes").on_change(self._node_changed)

    def _node_changed(self, old: Object | None, new: Object | None) -> None:
        if new is None or not _is_ours(new):
            return
        if _stand(new) != (_stand(old) if old is not None else _NOTHING):
            self.enqueue(("", new["metadata"]["name"]))

    def sync(self, key: Key) -> None:
        node = self.api.find("nodes", None, key[1])
        if node is None or not _is_ours(node) or failure_of(node):
            return
        status = node.setdefault("status", {})
        instances = {name: "0" for name in status.get("capacity") or () if name.startswith(PREFIX)}
        instances |= {PREFIX + profile: str(count) for profile, count in _told(node).items()}
        for field in ("capacity", "allocatable"):
            status[field] = {**(status.get(field) or {}), **instances}
        self.api.update("nodes", node, subresource="status")


def _is_ours(node: Object) -> bool:
    labels = node["metadata"].get("labels") or {}
    return bool(labels.get(PARTITIONING, "").startswith("mig")) and is_simulated(node)


def _stand(node: Object) -> tuple[Counter[str], str]:
    """What a node was told, and whether it can do it."""
    return _told(node), failure_of(node)


def _told(node: Object) -> Counter[str]:
    """How many instances of each profile all GPUs of a node are to have; what is no number is nothing."""
    found: Counter[str] = Counter()
    for name, text in (node["metadata"].get("annotations") or {}).items():
        if name.startswith(SPEC):
            _, _, profile = name.removeprefix(SPEC + "-").partition("-")
            found[profile] += int(text) if profile and text.isdecimal() else 0
    return +found
