"""Checks of a pod's spec, whether a pod's own or a template's."""

import re
from collections.abc import Collection, Iterable
from typing import Any

from mooring.kubeapi.kinds.field_errors import (
    at_least,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    one_of,
    required,
)
from mooring.kubeapi.kinds.metadata import check_labels, dns_label, qualified_name, subdomain
from mooring.kubeapi.kinds.pod_placement import check_placement
from mooring.kubeapi.status import FieldError, Object
from mooring.model.values.quantity import NANO, parse_quantity
from mooring.model.values.requests import is_extended

HIGHEST_PORT = 65535
PORT_RANGE = f"must be between 1 and {HIGHEST_PORT}, inclusive"
RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_STANDARD = ("cpu", "memory", "ephemeral-storage")
_SYSCTL = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?", re.ASCII)
_SYSCTL_WORDS = (
    "must have at most 253 characters and match regex "
    r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
)
_LONGEST_DEADLINE = 2**31 - 1


def check_pod_spec(spec: Object, path: str = "spec", *, claimed: Iterable[str] = ()) -> list[FieldError]:
    """All that is wrong with a spec that has its defaults; `claimed` are volumes that its controller adds."""
    found = _check_volumes(spec.get("volumes") or (), f"{path}.volumes")
    volumes = {volume.get("name", "") for volume in spec.get("volumes") or ()} | set(claimed)
    found += _check_containers(spec, path, volumes)
    found += one_of(f"{path}.restartPolicy", spec.get("restartPolicy"), RESTART_POLICIES)
    found += one_of(f"{path}.dnsPolicy", spec.get("dnsPolicy"), _DNS_POLICIES)
    found += check_labels(spec.get("nodeSelector"), f"{path}.nodeSelector")
    found += at_least(f"{path}.terminationGracePeriodSeconds", spec.get("terminationGracePeriodSeconds"))
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _LONGEST_DEADLINE:
        detail = f"must be between 1 and {_LONGEST_DEADLINE}, inclusive"
        found.append(invalid(f"{path}.activeDeadlineSeconds", deadline, detail))
    for name, check in (
        ("serviceAccountName", subdomain),
        ("nodeName", subdomain),
        ("priorityClassName", subdomain),
        ("runtimeClassName", subdomain),
        ("hostname", dns_label),
        ("subdomain", dns_label),
    ):
        if (value := spec.get(name)) and (wrong := check(value)):
            found.append(invalid(f"{path}.{name}", value, wrong))
    found += _check_gates(spec, path)
    found += _check_sysctls(spec, f"{path}.securityContext.sysctls")
    found += check_placement(spec, path)
    if spec.get("overhead"):
        found += _check_amounts(spec["overhead"], f"{path}.overhead")
    return found


def _check_gates(spec: Object, path: str) -> list[FieldError]:
    found = []
    seen: set[str] = set()
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        name = gate.get("name", "")
        if wrong := qualified_name(name):
            found.append(invalid(f"{path}.schedulingGates[{index}].name", name, wrong))
        if name in seen:
            found.append(duplicate(f"{path}.schedulingGates[{index}]", name))
        seen.add(name)
    if seen and spec.get("nodeName"):
        found.append(forbidden(f"{path}.nodeName", "cannot be set until all schedulingGates have been cleared"))
    return found


def _check_sysctls(spec: Object, path: str) -> list[FieldError]:
    found = []
    for index, sysctl in enumerate((spec.get("securityContext") or {}).get("sysctls") or ()):
        name = sysctl.get("name", "")
        if not name:
            found.append(required(f"{path}[{index}].name"))
        elif len(name) > 253 or not _SYSCTL.fullmatch(name):
            found.append(invalid(f"{path}[{index}].name", name, _SYSCTL_WORDS))
    return found


def _check_volumes(volumes: Iterable[Object], path: str) -> list[FieldError]:
    found = []
    seen: set[str] = set()
    for index, volume in enumerate(volumes):
        name = volume.get("name", "")
        if not name:
            found.append(required(f"{path}[{index}].name"))
        elif wrong := dns_label(name):
            found.append(invalid(f"{path}[{index}].name", name, wrong))
        elif name in seen:
            found.append(duplicate(f"{path}[{index}].name", name))
        seen.add(name)
        sources = [source for source in volume if source != "name"]
        if len(sources) > 1:
            detail = "may not specify more than 1 volume type"
            found.append(forbidden(f"{path}[{index}].{sorted(sources)[1]}", detail))
    return found


def _check_containers(spec: Object, path: str, volumes: set[str]) -> list[FieldError]:
    if not spec.get("containers"):
        return [required(f"{path}.containers")]
    found: list[FieldError] = []
    seen: set[str] = set()
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            here = f"{path}.{kind}[{index}]"
            found += _check_name(container, here, seen)
            found += _check_container(container, here, volumes, spec)
    return found


def _check_name(container: Object, path: str, seen: set[str]) -> list[FieldError]:
    name = container.get("name", "")
    if not name:
        return [required(f"{path}.name")]
    if wrong := dns_label(name):
        return [invalid(f"{path}.name", name, wrong)]
    if name in seen:
        return [duplicate(f"{path}.name", name)]
    seen.add(name)
    return []


def _check_container(container: Object, path: str, volumes: set[str], spec: Object) -> list[FieldError]:
    found: list[FieldError] = []
    image = container.get("image", "")
    if not image:
        found.append(required(f"{path}.image"))
    elif image != image.strip():
        found.append(invalid(f"{path}.image", image, "must not have leading or trailing whitespace"))
    found += one_of(f"{path}.imagePullPolicy", container.get("imagePullPolicy"), _PULL_POLICIES)
    for index, variable in enumerate(container.get("env") or ()):
        if not variable.get("name"):
            found.append(required(f"{path}.env[{index}].name"))
        if variable.get("value") and variable.get("valueFrom"):
            detail = "may not be specified when `value` is not empty"
            found.append(invalid(f"{path}.env[{index}].valueFrom", "", detail))
    found += _check_ports(container.get("ports") or (), f"{path}.ports", is_on_host=bool(spec.get("hostNetwork")))
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(name)
        if probe is not None and not any(handler in probe for handler in _HANDLERS):
            found.append(required(f"{path}.{name}", "must specify a handler type"))
    found += _check_mounts(container.get("volumeMounts") or (), f"{path}.volumeMounts", volumes)
    claims = {claim.get("name") for claim in spec.get("resourceClaims") or ()}
    return found + check_resources(container.get("resources") or {}, f"{path}.resources", claims)


def _check_ports(ports: Iterable[Object], path: str, *, is_on_host: bool) -> list[FieldError]:
    found = []
    names: set[str] = set()
    for index, port in enumerate(ports):
        here, number = f"{path}[{index}]", port.get("containerPort", 0)
        if name := port.get("name"):
            if name in names:
                found.append(duplicate(f"{here}.name", name))
            names.add(name)
        if number == 0:
            found.append(required(f"{here}.containerPort"))
        elif not 1 <= number <= HIGHEST_PORT:
            found.append(invalid(f"{here}.containerPort", number, PORT_RANGE))
        on_host = port.get("hostPort", 0)
        if on_host and not 1 <= on_host <= HIGHEST_PORT:
            found.append(invalid(f"{here}.hostPort", on_host, PORT_RANGE))
        elif on_host and is_on_host and on_host != number:
            found.append(invalid(f"{here}.hostPort", on_host, "must match `containerPort` when `hostNetwork` is true"))
        if (protocol := port.get("protocol", "TCP")) not in _PROTOCOLS:
            found.append(not_supported(f"{here}.protocol", protocol, _PROTOCOLS))
    return found


def _check_mounts(mounts: Iterable[Object], path: str, volumes: set[str]) -> list[FieldError]:
    found = []
    places: set[str] = set()
    for index, mount in enumerate(mounts):
        here, name, place = f"{path}[{index}]", mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            found.append(required(f"{here}.name"))
        elif name not in volumes:
            found.append(not_found(f"{here}.name", name))
        if not place:
            found.append(required(f"{here}.mountPath"))
        elif place in places:
            found.append(invalid(f"{here}.mountPath", place, "must be unique"))
        places.add(place)
    return found


def _check_amounts(amounts: dict[str, str], path: str) -> list[FieldError]:
    found = []
    for name, text in amounts.items():
        here = f"{path}[{name}]"
        if wrong := qualified_name(name):
            found.append(invalid(here, name, wrong))
        elif "/" not in name and name not in _STANDARD and not name.startswith("hugepages-"):
            found.append(invalid(here, name, "must be a standard resource type or fully qualified"))
            found.append(invalid(here, name, "must be a standard resource for containers"))
        nanos = parse_quantity(text)
        if nanos < 0:
            found.append(invalid(here, text, "must be greater than or equal to 0"))
        elif nanos % NANO and is_extended(name):
            found.append(invalid(here, text, "must be an integer"))
    return found


def check_resources(resources: Object, path: str, claims: Collection[Any] = ()) -> list[FieldError]:
    """Check requests and limits of a container or of a whole pod."""
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    found = _check_amounts(limits, f"{path}.limits") + _check_amounts(requests, f"{path}.requests")
    for name, text in requests.items():
        limit = limits.get(name)
        is_counted = name.startswith("hugepages-") or ("/" in name and is_extended(name))
        if limit is None:
            if is_counted:
                found.append(required(f"{path}.limits", "Limit must be set for non overcommitable resources"))
        elif is_counted and parse_quantity(text) != parse_quantity(limit):
            found.append(invalid(f"{path}.requests", text, f"must be equal to {name} limit of {limit}"))
        elif parse_quantity(text) > parse_quantity(limit):
            found.append(invalid(f"{path}.requests", text, f"must be less than or equal to {name} limit of {limit}"))
    for index, claim in enumerate(resources.get("claims") or ()):
        if claim.get("name") not in claims:
            found.append(not_found(f"{path}.claims[{index}]", claim.get("name")))
    return found
