"""Names of resources: an object's own, as in `jobs.batch`, and those that quotas and limits may speak of."""

import re
from functools import lru_cache
from typing import Any

from mooring.model.values.requests import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, is_extended

STORAGE = "storage"
REQUESTS = "requests."
COUNT = "count/"
HUGE_PAGES = "hugepages-"
DEVICE_CLASS = "deviceclass.resource.kubernetes.io/"
"""Devices of dynamic allocation that are asked for like extended resources."""
STORAGE_CLASS = ".storageclass.storage.k8s.io/"

COUNTED = (
    PODS,
    "services",
    "services.nodeports",
    "services.loadbalancers",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
)
"""What quotas count under names of their own, apart from `count/...`."""
COMPUTE = (CPU, MEMORY, "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
"""What every container has to state if a quota of its namespace has it."""
QUOTA_RESOURCES = (
    *COMPUTE,
    EPHEMERAL_STORAGE,
    "requests.ephemeral-storage",
    "limits.ephemeral-storage",
    "requests.storage",
    *COUNTED,
)

_QUALIFIED = re.compile(
    r"(?:(?=[^/]{1,253}/)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*/)?"
    r"(?=.{1,63}$)[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?",
    re.ASCII,
)


def is_qualified(name: str) -> bool:
    """Tell whether it is a name, or a DNS subdomain, a slash and a name."""
    return _QUALIFIED.fullmatch(name) is not None


def is_quota_resource(name: str) -> bool:
    """Tell whether a quota may have it: a standard name, or anything with a domain in front."""
    if "/" in name:
        return is_qualified(name)
    return name in QUOTA_RESOURCES or name.startswith((HUGE_PAGES, REQUESTS + HUGE_PAGES))


def is_container_resource(name: str) -> bool:
    """Tell whether a container may ask for it."""
    if "/" not in name:
        return name in (CPU, MEMORY, EPHEMERAL_STORAGE) or name.startswith(HUGE_PAGES)
    return is_qualified(name) and ("kubernetes.io/" in name or is_qualified(REQUESTS + name))


def is_overcommitted(name: str) -> bool:
    """Tell whether limits may exceed requests: not for devices, nor for huge pages."""
    return ("/" not in name or "kubernetes.io/" in name) and not name.startswith(HUGE_PAGES)


def is_device(name: str) -> bool:
    """Tell whether quotas charge it as `requests.<name>`."""
    return is_extended(name) or name.startswith(DEVICE_CLASS)


@lru_cache(maxsize=256)
def plural(kind: str) -> str:
    """Name a kind's resource: `ReplicaSet` is served under `replicasets`.

    >>> [plural(kind) for kind in ("Job", "PriorityClass", "CSIStorageCapacity")]
    ['jobs', 'priorityclasses', 'csistoragecapacities']
    """
    name = kind.lower()
    if name.endswith("s"):
        return f"{name}es"
    return f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"


def resource_of(found: Any) -> str:
    """Name an object's resource with its group, as messages do: `pods`, `jobs.batch`."""
    return resource_name(found.api_version, found.kind)


@lru_cache(maxsize=1024)
def resource_name(api_version: str, kind: str) -> str:
    group = api_version.rpartition("/")[0]
    return f"{plural(kind)}.{group}" if group else plural(kind)
