"""Slices, classes, claims and pods that claim, in one line each; see `builders.py`."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from mooring.model.api.claims import ResourceClaim, ResourceClaimTemplate, unify_requests
from mooring.model.api.devices import DeviceClass, DeviceTaintRule, ResourceSlice
from mooring.model.api.pods import Pod, PodResourceClaim
from mooring.testing.builders import make_pod

DRIVER = "gpu.example.com"
CLASS = "gpu"

Json = Mapping[str, Any]


def make_device(name: str, *, attributes: Mapping[str, int | bool | str] | None = None, **given: Any) -> dict[str, Any]:
    """A device as a slice lists it; attributes by their plain values."""
    kinds = {bool: "bool", int: "int", str: "string"}
    values = {key: {kinds[type(value)]: value} for key, value in (attributes or {}).items()}
    return {"name": name, **({"attributes": values} if values else {}), **given}


def make_slice(
    node: str, devices: int | Sequence[Json] = 1, *, driver: str = DRIVER, name: str = "", **given: Any
) -> ResourceSlice:
    """A slice that is the whole pool of a node, with so many devices gpu-0, gpu-1, or those given."""
    listed = [make_device(f"gpu-{number}") for number in range(devices)] if isinstance(devices, int) else devices
    spec = {
        "driver": driver,
        "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
        "nodeName": node,
        "devices": list(listed),
        **given,
    }
    return msgspec.convert({"metadata": {"name": name or f"{node}-{driver}"}, "spec": spec}, ResourceSlice)


def make_class(name: str = CLASS, *selectors: str, driver: str = DRIVER, **given: Any) -> DeviceClass:
    expressions = selectors or (f'device.driver == "{driver}"',)
    spec = {"selectors": [{"cel": {"expression": each}} for each in expressions], **given}
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, DeviceClass)


def make_request(name: str = "gpu", *selectors: str, count: int = 1, of: str = CLASS, **given: Any) -> dict[str, Any]:
    """A request for exactly so many devices of a class."""
    asked = {"deviceClassName": of, "count": count, **given}
    if selectors:
        asked["selectors"] = [{"cel": {"expression": each}} for each in selectors]
    return {"name": name, "exactly": asked}


def _spec(requests: Sequence[Json], constraints: Sequence[Json]) -> dict[str, Any]:
    return {"devices": {"requests": list(requests or [make_request()]), "constraints": list(constraints)}}


def make_claim(
    name: str, *requests: Json, constraints: Sequence[Json] = (), status: Json | None = None
) -> ResourceClaim:
    document = {
        "metadata": {"name": name, "namespace": "default", "uid": f"claim-{name}"},
        "spec": _spec(requests, constraints),
        "status": status or {},
    }
    claim = msgspec.convert(document, ResourceClaim)
    unify_requests(claim.spec)
    return claim


def make_template(name: str, *requests: Json, constraints: Sequence[Json] = ()) -> ResourceClaimTemplate:
    document = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"spec": _spec(requests, constraints)},
    }
    template = msgspec.convert(document, ResourceClaimTemplate)
    unify_requests(template.spec.spec)
    return template


def make_taint_rule(name: str, *, effect: str = "NoSchedule", **selector: str) -> DeviceTaintRule:
    """A rule that taints the devices of a driver, a pool, or one device."""
    spec = {"taint": {"key": "broken", "effect": effect}, "deviceSelector": selector}
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, DeviceTaintRule)


def make_claiming_pod(name: str, *, templates: Sequence[str] = (), claims: Sequence[str] = (), **given: Any) -> Pod:
    """A pod with claims of its own from templates, and with claims that it names."""
    pod = make_pod(name, **given)
    asked = [PodResourceClaim(name=each, resource_claim_template_name=each) for each in templates]
    asked += [PodResourceClaim(name=each, resource_claim_name=each) for each in claims]
    return replace(pod, spec=replace(pod.spec, resource_claims=asked))
