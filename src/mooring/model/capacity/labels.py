"""Label keys, annotations and taints that Karpenter gives a meaning to."""

from mooring.model.api.nodes import Taint

GROUP = "karpenter.sh"

NODE_POOL = "karpenter.sh/nodepool"
CAPACITY_TYPE = "karpenter.sh/capacity-type"
REGISTERED = "karpenter.sh/registered"
INITIALIZED = "karpenter.sh/initialized"
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
ARCH = "kubernetes.io/arch"
OS = "kubernetes.io/os"
RESERVATION_ID = "karpenter.kwok.sh/reservation-id"

SPOT, ON_DEMAND, RESERVED = "spot", "on-demand", "reserved"
CAPACITY_TYPES = (RESERVED, SPOT, ON_DEMAND)
"""In the order in which a claim that allows several is launched."""

WELL_KNOWN = frozenset(
    {
        NODE_POOL,
        CAPACITY_TYPE,
        ZONE,
        REGION,
        INSTANCE_TYPE,
        ARCH,
        OS,
        "node.kubernetes.io/windows-build",
        RESERVATION_ID,
        "karpenter.kwok.sh/instance-family",
        "karpenter.kwok.sh/instance-size",
        "karpenter.kwok.sh/instance-cpu",
        "karpenter.kwok.sh/instance-memory",
        "karpenter.kwok.sh/instance-gpu-name",
        "karpenter.kwok.sh/instance-gpu-count",
    }
)
"""Keys that pods may ask for although no NodePool names them."""

OLD_NAMES = {
    "failure-domain.beta.kubernetes.io/zone": ZONE,
    "failure-domain.beta.kubernetes.io/region": REGION,
    "beta.kubernetes.io/arch": ARCH,
    "beta.kubernetes.io/os": OS,
    "beta.kubernetes.io/instance-type": INSTANCE_TYPE,
}

DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
DISRUPTION_COST = "karpenter.sh/disruption-cost"
NODE_POOL_HASH = "karpenter.sh/nodepool-hash"
NODE_POOL_HASH_VERSION = "karpenter.sh/nodepool-hash-version"
POD_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"

DISRUPTED = Taint(key="karpenter.sh/disrupted", effect="NoSchedule")

PASSING_TAINTS = frozenset(
    {
        ("node.kubernetes.io/not-ready", "NoSchedule"),
        ("node.kubernetes.io/not-ready", "NoExecute"),
        ("node.kubernetes.io/unreachable", "NoSchedule"),
        ("node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule"),
        ("karpenter.sh/unregistered", "NoExecute"),
    }
)
"""Keys and effects of taints that a node has only until it is initialized."""
PASSING_TAINT_PREFIX = "readiness.k8s.io/"


def current_name(key: str) -> str:
    """Translate a deprecated label key."""
    return OLD_NAMES.get(key, key)


def is_restricted(key: str) -> bool:
    """Tell whether pods may not select by a label because Karpenter decides on its value itself."""
    if key in WELL_KNOWN:
        return False
    domain = key.partition("/")[0] if "/" in key else ""
    return domain == GROUP or domain.endswith(f".{GROUP}") or key == HOSTNAME
