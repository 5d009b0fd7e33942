"""Services: addresses and ports are handed out, so that objects look as on a cluster; nothing listens there."""

from collections.abc import Callable, Iterable
from ipaddress import ip_network
from typing import ClassVar

from mooring.kubeapi.kinds.field_errors import IMMUTABLE, duplicate, invalid, not_supported, required
from mooring.kubeapi.kinds.metadata import check_labels, dns_label
from mooring.kubeapi.kinds.pod_spec import HIGHEST_PORT, PORT_RANGE
from mooring.kubeapi.kinds.standard import Standard
from mooring.kubeapi.registry import Resource
from mooring.kubeapi.status import FieldError, Object, internal

SERVICE_NETWORK = "10.0.0.0/24"
NODE_PORTS = range(30000, 32768)
_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_WITH_NODE_PORTS = ("NodePort", "LoadBalancer")


class Services(Standard):
    counts_generation = False
    returns_deleted = True
    allows_create_on_update = True
    fields_selectable: ClassVar[dict[str, tuple[str, ...]]] = {
        "spec.clusterIP": ("spec", "clusterIP"),
        "spec.type": ("spec", "type"),
    }

    def __init__(self, resource: Resource, others: Callable[[], Iterable[Object]]) -> None:
        super().__init__(resource)
        self._others = others

    def check_name(self, name: str) -> str:
        return dns_label(name)

    def begin(self, obj: Object) -> None:
        obj["status"] = {"loadBalancer": {}}
        self._assign(obj["spec"])

    def change(self, new: Object, old: Object, subresource: str) -> None:
        """Keep the addresses that a client left out, and what the type still has use for."""
        spec, before = new["spec"], old["spec"]
        if spec.get("type") == "ExternalName" and before.get("type") != "ExternalName":
            for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"):
                spec.pop(name, None)
        elif before.get("type") != "ExternalName" and spec.get("type") != "ExternalName":
            for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
                if not spec.get(name) and name in before:
                    spec[name] = before[name]
        if spec.get("type") in _WITH_NODE_PORTS and before.get("type") in _WITH_NODE_PORTS:
            held = {
                (port.get("port"), port.get("protocol")): port.get("nodePort") for port in before.get("ports") or ()
            }
            for port in spec.get("ports") or ():
                if not port.get("nodePort") and (number := held.get((port.get("port"), port.get("protocol")))):
                    port["nodePort"] = number
        elif spec.get("type") not in _WITH_NODE_PORTS:
            for port in spec.get("ports") or ():
                port.pop("nodePort", None)
            if not spec.get("externalIPs"):
                spec.pop("externalTrafficPolicy", None)
            spec.pop("allocateLoadBalancerNodePorts", None)
        self._assign(spec)

    def _assign(self, spec: Object) -> None:
        if spec.get("type") != "ExternalName":
            if not spec.get("clusterIP"):
                spec["clusterIP"] = self._free_address()
            spec["clusterIPs"] = spec.get("clusterIPs") or [spec["clusterIP"]]
            is_anything = spec["clusterIP"] == "None" and not spec.get("selector")
            spec.setdefault("ipFamilies", ["IPv4", "IPv6"] if is_anything else ["IPv4"])
            spec.setdefault("ipFamilyPolicy", "RequireDualStack" if is_anything else "SingleStack")
        if spec.get("type") in _WITH_NODE_PORTS:
            self._assign_node_ports(spec.get("ports") or ())

    def _free_address(self) -> str:
        taken = {service["spec"].get("clusterIP") for service in self._others()}
        for address in ip_network(SERVICE_NETWORK).hosts():
            if str(address) not in taken and not str(address).endswith(".0.1"):
                return str(address)
        raise internal("failed to allocate a serviceIP: range is full")

    def _assign_node_ports(self, ports: Iterable[Object]) -> None:
        wanting = [port for port in ports if not port.get("nodePort")]
        if not wanting:
            return
        taken = {port.get("nodePort") for service in self._others() for port in service["spec"].get("ports") or ()}
        taken |= {port.get("nodePort") for port in ports}
        free = (number for number in NODE_PORTS if number not in taken)
        for port in wanting:
            port["nodePort"] = next(free)

    def check(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        found: list[FieldError] = []
        if spec.get("type") not in _TYPES:
            found.append(not_supported("spec.type", spec.get("type"), _TYPES))
        if spec.get("type") == "ExternalName" and not spec.get("externalName"):
            found.append(required("spec.externalName"))
        if not spec.get("ports") and spec.get("clusterIP") != "None" and spec.get("type") != "ExternalName":
            found.append(required("spec.ports"))
        if spec.get("sessionAffinity") not in ("ClientIP", "None"):
            found.append(not_supported("spec.sessionAffinity", spec.get("sessionAffinity"), ("ClientIP", "None")))
        found += check_labels(spec.get("selector"), "spec.selector")
        return found + _check_ports(spec.get("ports") or ()) + self._check_taken(obj)

    def _check_taken(self, obj: Object) -> list[FieldError]:
        """What another service has already: an address, a port of the nodes."""
        spec, uid = obj["spec"], obj["metadata"].get("uid")
        address, ports = spec.get("clusterIP"), spec.get("ports") or ()
        if spec.get("type") == "ExternalName":
            return []
        found = []
        others = [service["spec"] for service in self._others() if service["metadata"]["uid"] != uid]
        if address not in (None, "", "None") and any(other.get("clusterIP") == address for other in others):
            detail = f"failed to allocate IP {address}: provided IP is already allocated"
            found.append(invalid("spec.clusterIPs", [address], detail))
        taken = {
            (port.get("nodePort"), port.get("protocol", "TCP")) for other in others for port in other.get("ports") or ()
        }
        for index, port in enumerate(ports):
            if port.get("nodePort") and (port["nodePort"], port.get("protocol", "TCP")) in taken:
                detail = "provided port is already allocated"
                found.append(invalid(f"spec.ports[{index}].nodePort", port["nodePort"], detail))
        return found

    def check_update(self, new: Object, old: Object) -> list[FieldError]:
        spec, before = new["spec"], old["spec"]
        was = before.get("clusterIP")
        if was and "ExternalName" not in (spec.get("type"), before.get("type")) and spec.get("clusterIP") != was:
            return [invalid("spec.clusterIPs[0]", spec.get("clusterIPs"), "may not change once set")]
        if spec.get("loadBalancerClass") != before.get("loadBalancerClass") and before.get("type") == "LoadBalancer":
            return [invalid("spec.loadBalancerClass", spec.get("loadBalancerClass"), IMMUTABLE)]
        return []


def _check_ports(ports: Iterable[Object]) -> list[FieldError]:
    found = []
    ports = list(ports)
    names: set[str] = set()
    seen: set[tuple[int, str]] = set()
    for index, port in enumerate(ports):
        here, number, name = f"spec.ports[{index}]", port.get("port", 0), port.get("name", "")
        if not name and len(ports) > 1:
            found.append(required(f"{here}.name"))
        elif name and name in names:
            found.append(duplicate(f"{here}.name", name))
        names.add(name)
        if not 1 <= number <= HIGHEST_PORT:
            found.append(invalid(f"{here}.port", number, PORT_RANGE))
        key = (number, port.get("protocol", "TCP"))
        if key in seen:
            found.append(duplicate(here, {"port": number, "protocol": key[1]}))
        seen.add(key)
        if (node_port := port.get("nodePort")) and node_port not in NODE_PORTS:
            detail = "provided port is not in the valid range. The range of valid ports is 30000-32767"
            found.append(invalid(f"{here}.nodePort", node_port, detail))
    return found
