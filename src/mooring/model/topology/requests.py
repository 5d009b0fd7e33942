"""Where the members of a gang want to be relative to one another, in neutral words; and Volcano's HyperNode.

A level of a topology is named by its node label key, as in Kueue's and KAI's Topology, or as `hypernode-tier/N` for the
HyperNodes of one tier. Whichever dialect a topology request is written in, it is read into a `TopologyRequest`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from mooring.model.api.meta import KubeObject, LabelSelector, ObjectMeta
from mooring.model.places import show

KUEUE_REQUIRED = "kueue.x-k8s.io/podset-required-topology"
KUEUE_PREFERRED = "kueue.x-k8s.io/podset-preferred-topology"
KUEUE_UNCONSTRAINED = "kueue.x-k8s.io/podset-unconstrained-topology"
KUEUE_SLICE_LEVEL = "kueue.x-k8s.io/podset-slice-required-topology"
KUEUE_SLICE_SIZE = "kueue.x-k8s.io/podset-slice-size"
KUEUE_SLICE_LAYERS = "kueue.x-k8s.io/podset-slice-required-topology-constraints"
KAI_TOPOLOGY = "kai.scheduler/topology"
KAI_REQUIRED = "kai.scheduler/topology-required-placement"
KAI_PREFERRED = "kai.scheduler/topology-preferred-placement"

TIER_PREFIX = "hypernode-tier/"
NODE_MEMBER, HYPERNODE_MEMBER = "Node", "HyperNode"

KUEUE_REQUESTS = (KUEUE_REQUIRED, KUEUE_PREFERRED, KUEUE_UNCONSTRAINED, KUEUE_SLICE_LEVEL)
"""By each of these alone a pod set asks Kueue for a place in the topology."""

_KUEUE_EXCLUSIVE = (KUEUE_REQUIRED, KUEUE_PREFERRED, KUEUE_UNCONSTRAINED)
_LEVELS = (KUEUE_REQUIRED, KUEUE_PREFERRED, KUEUE_SLICE_LEVEL, KAI_REQUIRED, KAI_PREFERRED)
_ALL = (*_KUEUE_EXCLUSIVE, KUEUE_SLICE_LEVEL, KUEUE_SLICE_SIZE, KUEUE_SLICE_LAYERS, *_LEVELS)

_BOOLEANS = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}
"""What Go's ParseBool takes."""

_NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_SUBDOMAIN = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*"
_LABEL_KEY = re.compile(rf"(?:(?P<prefix>{_SUBDOMAIN})/)?{_NAME}")
_LONGEST_PREFIX = 253
_LARGEST_SLICE = 2**31 - 1


@dataclass(frozen=True, slots=True)
class TopologyRequest:
    """Near one another: all in one domain of `required`, rather of `preferred`, in slices of one domain each.

    Without any level it asks for no more than to be within the topology, in few domains.
    """

    required: str | None = None
    """The level of which all must share one domain."""
    preferred: str | None = None
    """The level of which all should share one domain; else of the next coarser one, and so on."""
    slice_size: int = 0
    """Members that must share one domain of `slice_level`, counted by rank; 0 or 1: none must."""
    slice_level: str | None = None
    topology: str = ""
    """The Topology object that has the levels; empty: any that has them."""

    @property
    def has_slices(self) -> bool:
        return self.slice_size > 1 and self.slice_level is not None

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels that it names, each once, in the order in which they can only be nested, coarse to fine."""
        slices = self.slice_level if self.has_slices else None
        return tuple(dict.fromkeys(level for level in (self.required, self.preferred, slices) if level))

    @property
    def words(self) -> list[str]:
        """What it asks for, one thing after the other, for people; nothing if few domains are all that it wants."""
        found = [f"in one {self.required}"] if self.required else []
        found += [f"rather in one {self.preferred}"] if self.preferred else []
        return found + ([f"each {self.slice_size} in one {self.slice_level}"] if self.has_slices else [])


class TopologyRequestError(ValueError):
    """Annotations that contradict one another, or one that cannot be read: the field, what it should be, what it is."""

    def __init__(self, field: str, *, expected: str, found: str) -> None:
        super().__init__(f"{field}: expected {expected}, found {found}")
        self.field, self.expected, self.found = field, expected, found


def tier_level(tier: int) -> str:
    """The name of the level that the HyperNodes of a tier make up."""
    return f"{TIER_PREFIX}{tier}"


def tier_of(level: str) -> int | None:
    """The tier that a level stands for; None for a level of node labels."""
    text = level.removeprefix(TIER_PREFIX)
    return int(text) if text != level and text.isascii() and text.isdigit() else None


def is_label_key(text: str) -> bool:
    """Whether Kubernetes takes a text for the key of a label."""
    match = _LABEL_KEY.fullmatch(text)
    return match is not None and len(match["prefix"] or "") <= _LONGEST_PREFIX


def asks_kueue(annotations: Mapping[str, str]) -> bool:
    """Whether annotations ask Kueue's topology-aware scheduling for anything, readable or not."""
    if KUEUE_UNCONSTRAINED in annotations:
        return _BOOLEANS.get(annotations[KUEUE_UNCONSTRAINED], True)
    return any(key in annotations for key in KUEUE_REQUESTS)


def topology_request_of(
    annotations: Mapping[str, str] | None, where: str = "metadata.annotations"
) -> TopologyRequest | None:
    """Read the topology request that Kueue's or KAI's annotations state; None where they state none.

    Raise WishError, with a field below `where`, for what cannot be read or cannot be meant.
    """
    if not annotations or not any(key in annotations for key in _ALL):
        return None
    _check_kueue(annotations, where)
    for key in _LEVELS:
        if key in annotations and not is_label_key(annotations[key]):
            expected = "a topology level: the key of a node label"
            raise TopologyRequestError(f"{where}.{key}", expected=expected, found=show(annotations[key]))
    topology_request = TopologyRequest(
        required=_agreed(annotations, KUEUE_REQUIRED, KAI_REQUIRED, where),
        preferred=_agreed(annotations, KUEUE_PREFERRED, KAI_PREFERRED, where),
        slice_size=_slice_size(annotations, where),
        slice_level=annotations.get(KUEUE_SLICE_LEVEL),
        topology=annotations.get(KAI_TOPOLOGY, ""),
    )
    is_free = _BOOLEANS.get(annotations.get(KUEUE_UNCONSTRAINED, ""), False)
    level = topology_request.required or topology_request.preferred
    if is_free and level:  # Kueue's own were refused above
        expected = f"no level from KAI beside {KUEUE_UNCONSTRAINED}"
        raise TopologyRequestError(
            f"{where}.{KAI_REQUIRED if topology_request.required else KAI_PREFERRED}",
            expected=expected,
            found=show(level),
        )
    return (
        topology_request
        if is_free or topology_request.required or topology_request.preferred or topology_request.slice_level
        else None
    )


def _check_kueue(annotations: Mapping[str, str], where: str) -> None:
    given = [key for key in _KUEUE_EXCLUSIVE if key in annotations]
    if len(given) > 1:
        expected = f"no {given[1].partition('/')[2]} beside {given[0].partition('/')[2]}"
        raise TopologyRequestError(f"{where}.{given[1]}", expected=expected, found=show(annotations[given[1]]))
    unconstrained = annotations.get(KUEUE_UNCONSTRAINED)
    if unconstrained is not None and unconstrained not in _BOOLEANS:
        raise TopologyRequestError(
            f"{where}.{KUEUE_UNCONSTRAINED}", expected="true or false", found=show(unconstrained)
        )
    if KUEUE_SLICE_LAYERS in annotations:
        # Kueue refuses it too, unless its alpha feature gate is on.
        expected = f"{KUEUE_SLICE_LEVEL} and {KUEUE_SLICE_SIZE} in its place, as slices have one layer"
        raise TopologyRequestError(
            f"{where}.{KUEUE_SLICE_LAYERS}", expected=expected, found=show(annotations[KUEUE_SLICE_LAYERS])
        )


def _agreed(annotations: Mapping[str, str], first: str, second: str, where: str) -> str | None:
    one, other = annotations.get(first), annotations.get(second)
    if one is not None and other is not None and one != other:
        raise TopologyRequestError(f"{where}.{second}", expected=f"{show(one)}, as in {first}", found=show(other))
    return other if one is None else one


def _slice_size(annotations: Mapping[str, str], where: str) -> int:
    text, level = annotations.get(KUEUE_SLICE_SIZE), annotations.get(KUEUE_SLICE_LEVEL)
    if text is None and level is None:
        return 0
    if text is None:
        expected = f"a size, as {KUEUE_SLICE_LEVEL} is set"
        raise TopologyRequestError(f"{where}.{KUEUE_SLICE_SIZE}", expected=expected, found="none")
    if level is None:
        expected = f"none without {KUEUE_SLICE_LEVEL}"
        raise TopologyRequestError(f"{where}.{KUEUE_SLICE_SIZE}", expected=expected, found=show(text))
    if not re.fullmatch(r"\+?\d{1,10}", text, re.ASCII) or not 1 <= int(text) <= _LARGEST_SLICE:
        raise TopologyRequestError(
            f"{where}.{KUEUE_SLICE_SIZE}", expected="a whole number of at least 1", found=show(text)
        )
    return int(text)


class ExactMatch(KubeObject):
    name: str = ""


class RegexMatch(KubeObject):
    pattern: str = ""


class MemberSelector(KubeObject):
    """Exactly one of three ways to say who is meant."""

    exact_match: ExactMatch | None = None
    regex_match: RegexMatch | None = None
    label_match: LabelSelector | None = None
    """Of nodes only."""


class HyperNodeMember(KubeObject):
    type: str = ""
    selector: MemberSelector = msgspec.field(default_factory=MemberSelector)


class HyperNodeSpec(KubeObject):
    tier: int
    """The lower, the faster the network inside."""
    tier_name: str = ""
    members: list[HyperNodeMember] = []


class HyperNode(KubeObject):
    """A part of the network with equal bandwidth inside: nodes, or HyperNodes of lower tiers."""

    spec: HyperNodeSpec
    api_version: str = "topology.volcano.sh/v1alpha1"
    kind: str = "HyperNode"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


HARD, SOFT = "hard", "soft"


class NetworkTopology(KubeObject):
    """How near one another Volcano's pods have to be: within a HyperNode of this tier, or a lower one."""

    mode: str = HARD
    highest_tier_allowed: int | None = None
    highest_tier_name: str = ""
