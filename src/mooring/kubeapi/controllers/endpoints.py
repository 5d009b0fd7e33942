"""Endpoints and EndpointSlices: the addresses of the pods that a service selects."""

import hashlib

from mooring.kubeapi.controllers.controller import Controller, Key, Object
from mooring.kubeapi.controllers.ownership import owner_reference
from mooring.kubeapi.controllers.pods import PodView
from mooring.kubeapi.status import ApiError
from mooring.model.values.selectors import compile_equality

SLICES = "endpointslices.discovery.k8s.io"
SERVICE_NAME, MANAGED_BY = "kubernetes.io/service-name", "endpointslice.kubernetes.io/managed-by"
MANAGER, MIRROR = "endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"
ENDPOINTS_MANAGER = "endpoints.kubernetes.io/managed-by"


class Endpoints(Controller):
    """Keeps the Endpoints and the EndpointSlice of each service; mirrors Endpoints that people write themselves."""

    name = "endpointslice-controller"

    def start(self) -> None:
        self._services = self.informers.of("services")
        self._services.on_change(self._changed)
        self.informers.of("endpoints").on_change(self._changed)
        self.informers.of(SLICES).on_change(self._slice_changed)
        self.informers.pods.on_change(self._pod_changed)

    def _changed(self, old: Object | None, new: Object | None) -> None:
        found = new or old
        if found is not None:
            self.enqueue((found["metadata"]["namespace"], found["metadata"]["name"]))

    def _slice_changed(self, old: Object | None, new: Object | None) -> None:
        found = new or old
        labels = (found or {}).get("metadata", {}).get("labels") or {}
        if found is not None and labels.get(MANAGED_BY) in (MANAGER, MIRROR) and SERVICE_NAME in labels:
            self.enqueue((found["metadata"]["namespace"], labels[SERVICE_NAME]))

    def _pod_changed(self, old: PodView | None, new: PodView | None) -> None:
        for pod in (old, new):
            if pod is None or not pod.metadata.labels:
                continue
            for service in list(self._services.list(pod.metadata.namespace)):
                selector = service["spec"].get("selector")
                if selector and compile_equality(selector).matches(pod.metadata.labels):
                    self.enqueue((pod.metadata.namespace, service["metadata"]["name"]))

    def sync(self, key: Key) -> None:
        service = self._services.get(*key)
        if service is None:
            self._remove_all(key)
            return
        selector = service["spec"].get("selector")
        if not selector:
            self._mirror(key, service)
            return
        if service["spec"].get("type") == "ExternalName":
            return
        matches = compile_equality(selector).matches
        pods = [pod for pod in self.informers.pods.list(key[0]) if matches(pod.metadata.labels) and pod.status.pod_ip]
        pods.sort(key=lambda pod: (pod.metadata.namespace, pod.metadata.name))
        shown = [pod for pod in pods if not pod.is_terminal]
        publishes_all = bool(service["spec"].get("publishNotReadyAddresses"))
        self._write_slice(key, service, shown, publishes_all)
        self._write_endpoints(
            key, service, [pod for pod in shown if not pod.is_leaving or publishes_all], publishes_all
        )

    def _remove_all(self, key: Key) -> None:
        for found in list(self.informers.of(SLICES).list(key[0])):
            labels = found["metadata"].get("labels") or {}
            if labels.get(SERVICE_NAME) == key[1] and labels.get(MANAGED_BY) in (MANAGER, MIRROR):
                self._delete(SLICES, key[0], found["metadata"]["name"])
        endpoints = self.informers.of("endpoints").get(*key)
        if endpoints is not None and ENDPOINTS_MANAGER in (endpoints["metadata"].get("labels") or {}):
            self._delete("endpoints", *key)

    def _delete(self, resource: str, namespace: str, name: str) -> None:
        try:
            self.api.delete(resource, namespace, name)
        except ApiError as error:
            if error.code not in (404, 409):
                raise

    # Slices

    def _write_slice(self, key: Key, service: Object, pods: list[PodView], publishes_all: bool) -> None:
        ports = [_slice_port(port, pods) for port in service["spec"].get("ports") or ()]
        body = {
            "addressType": "IPv4",
            "endpoints": [self._slice_endpoint(pod, publishes_all) for pod in pods],
            "ports": [port for port in ports if port is not None],
        }
        labels = {SERVICE_NAME: key[1], MANAGED_BY: MANAGER, **(service["metadata"].get("labels") or {})}
        if service["spec"].get("clusterIP") == "None":
            labels["service.kubernetes.io/headless"] = ""
        self._put_slice(key, service, labels, body)

    def _slice_endpoint(self, pod: PodView, publishes_all: bool) -> Object:
        node = self.informers.of("nodes").get("", pod.spec.node_name)
        zone = ((node or {}).get("metadata", {}).get("labels") or {}).get("topology.kubernetes.io/zone")
        is_ready = pod.is_ready
        endpoint: Object = {
            "addresses": [pod.status.pod_ip],
            "conditions": {
                "ready": (is_ready and not pod.is_leaving) or publishes_all,
                "serving": is_ready,
                "terminating": pod.is_leaving,
            },
            "targetRef": _target(pod),
            "nodeName": pod.spec.node_name,
        }
        if zone:
            endpoint["zone"] = zone
        if pod.spec.hostname and pod.spec.subdomain:
            endpoint["hostname"] = pod.spec.hostname
        return endpoint

    def _put_slice(self, key: Key, service: Object, labels: dict[str, str], body: Object) -> None:
        manager = labels[MANAGED_BY]
        mine = [
            found
            for found in self.informers.of(SLICES).list(key[0])
            if (found["metadata"].get("labels") or {}).get(SERVICE_NAME) == key[1]
            and (found["metadata"].get("labels") or {}).get(MANAGED_BY) == manager
        ]
        if not mine:
            made = {
                "metadata": {
                    "generateName": f"{key[1]}-",
                    "labels": labels,
                    "ownerReferences": [owner_reference(service)],
                },
                **body,
            }
            self.api.create(SLICES, made, key[0])
            return
        for spare in mine[1:]:
            self._delete(SLICES, key[0], spare["metadata"]["name"])
        fresh = self.api.get(SLICES, key[0], mine[0]["metadata"]["name"])
        if {name: fresh.get(name) or [] for name in ("endpoints", "ports")} == {
            name: body[name] for name in ("endpoints", "ports")
        } and fresh["metadata"].get("labels") == labels:
            return
        fresh |= body
        fresh["metadata"]["labels"] = labels
        self.api.update(SLICES, fresh)

    # Endpoints

    def _write_endpoints(self, key: Key, service: Object, pods: list[PodView], publishes_all: bool) -> None:
        subsets: dict[str, Object] = {}
        for pod in pods:
            ports = []
            for port in service["spec"].get("ports") or ():
                number = _target_port(port, pod)
                if number is not None:
                    named = {"name": port["name"]} if port.get("name") else {}
                    ports.append({**named, "port": number, "protocol": port.get("protocol") or "TCP"})
            mark = hashlib.sha256(repr(ports).encode()).hexdigest()
            subset = subsets.setdefault(mark, {"ports": ports})
            where = "addresses" if pod.is_ready or publishes_all else "notReadyAddresses"
            address: Object = {"ip": pod.status.pod_ip, "nodeName": pod.spec.node_name, "targetRef": _target(pod)}
            subset.setdefault(where, []).append(address)
        wanted = list(subsets.values())
        labels = {**(service["metadata"].get("labels") or {}), ENDPOINTS_MANAGER: "endpoint-controller"}
        found = self.api.find("endpoints", *key)
        if found is None:
            made: Object = {"metadata": {"name": key[1], "labels": labels}}
            if wanted:
                made["subsets"] = wanted
            self.api.create("endpoints", made, key[0])
            return
        if (found.get("subsets") or []) == wanted and (found["metadata"].get("labels") or {}) == labels:
            return
        found["subsets"] = wanted
        found["metadata"]["labels"] = labels
        self.api.update("endpoints", found)

    def _mirror(self, key: Key, service: Object) -> None:
        """People may write the Endpoints of a service without a selector: a slice says the same."""
        found = self.informers.of("endpoints").get(*key)
        labels = (found or {}).get("metadata", {}).get("labels") or {}
        if found is None or labels.get("endpointslice.kubernetes.io/skip-mirror") == "true" or not found.get("subsets"):
            for one in list(self.informers.of(SLICES).list(key[0])):
                given = one["metadata"].get("labels") or {}
                if given.get(SERVICE_NAME) == key[1] and given.get(MANAGED_BY) == MIRROR:
                    self._delete(SLICES, key[0], one["metadata"]["name"])
            return
        subset = found["subsets"][0]
        endpoints = [
            {"addresses": [address["ip"]], "conditions": {"ready": is_ready}}
            for where, is_ready in (("addresses", True), ("notReadyAddresses", False))
            for address in subset.get(where) or ()
        ]
        ports = [
            {"name": port.get("name", ""), "protocol": port.get("protocol") or "TCP", "port": port["port"]}
            for port in subset.get("ports") or ()
        ]
        body = {"addressType": "IPv4", "endpoints": endpoints, "ports": ports}
        self._put_slice(key, service, {**labels, SERVICE_NAME: key[1], MANAGED_BY: MIRROR}, body)


def _target(pod: PodView) -> Object:
    return {"kind": "Pod", "namespace": pod.metadata.namespace, "name": pod.metadata.name, "uid": pod.metadata.uid}


def _slice_port(port: Object, pods: list[PodView]) -> Object | None:
    number = next((found for pod in pods if (found := _target_port(port, pod)) is not None), None)
    if number is None and pods:
        return None
    shown: Object = {"name": port.get("name") or "", "protocol": port.get("protocol") or "TCP"}
    if number is not None:
        shown["port"] = number
    return shown


def _target_port(port: Object, pod: PodView) -> int | None:
    target = port.get("targetPort", port["port"])
    if isinstance(target, int):
        return target or int(port["port"])
    for container in pod.spec.containers:
        for one in container.ports:
            if one.get("name") == target:
                return int(one["containerPort"])
    return None
