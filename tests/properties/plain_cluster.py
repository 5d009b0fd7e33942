"""A cluster kept by counting: what a story's documents say there is, and what the decisions made of it.

It knows nothing of the scheduler's state but which cards it says pods have. Where it is not sure that a pod would fit,
it says no: it complains only of what is certain.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
Gone = frozenset[str]
NOBODY: Gone = frozenset()
MIG_STARTS = {
    "1g.10gb": (1, range(7)),
    "1g.20gb": (2, range(0, 8, 2)),
    "2g.20gb": (2, range(0, 6, 2)),
    "3g.40gb": (4, (0, 4)),
    "4g.40gb": (4, (0,)),
    "7g.80gb": (8, (0,)),
}
"""Of a profile on an A100 with 80 GB: how many memory slices it takes, and where it may begin."""
CLAIMS = {"whole": ("whole", 1), "two": ("whole", 2), "half": ("half", 1), "quarter": ("quarter", 1)}
"""Of a template: devices of which kind, and how many."""
AMOUNTS = {"few": 2, "many": 5}
"""Of a template: GiB of one device."""
SLOTS = 4
SPREAD_AND_AFFINITY = ("topologySpreadConstraints", "affinity")


def milli(text: object) -> int:
    word = str(text)
    return int(word[:-1]) if word.endswith("m") else round(1000 * float(word))


def gibibytes(text: object) -> int:
    return int(str(text).removesuffix("Gi"))


@dataclass(frozen=True)
class Share:
    """What a pod has of a card, as the scheduler says."""

    pod: str
    cores: float
    memory: int
    profile: str
    start: int


@dataclass
class PlainCluster:
    nodes: dict[str, Json] = field(default_factory=dict)
    slices: dict[str, Json] = field(default_factory=dict)
    pods: dict[str, Json] = field(default_factory=dict)
    """All that are to run and are not over, by namespace/name."""
    running: dict[str, str] = field(default_factory=dict)
    devices: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    """By pod the devices that its claims have, and how many GiB of each (0: all of it)."""
    cpus: dict[str, set[int]] = field(default_factory=dict)
    """By pod the CPUs that its kubelet pins it to."""
    cards: dict[str, dict[int, list[Share]]] = field(default_factory=dict)
    """By node and card."""
    minimums: dict[str, int] = field(default_factory=dict)
    """By gang."""

    # What a pod is.

    def cpu(self, key: str) -> int:
        return milli(self.pods[key]["spec"]["containers"][0]["resources"]["requests"]["cpu"])

    def limits(self, key: str) -> Json:
        return self.pods[key]["spec"]["containers"][0]["resources"].get("limits") or {}

    def labels(self, key: str) -> Json:
        return self.pods[key]["metadata"].get("labels") or {}

    def annotations(self, key: str) -> Json:
        return self.pods[key]["metadata"].get("annotations") or {}

    def claim(self, key: str) -> str:
        claims = self.pods[key]["spec"].get("resourceClaims") or []
        return claims[0]["resourceClaimTemplateName"] if claims else ""

    def gang(self, key: str) -> str:
        """namespace/name of its gang, or nothing."""
        annotations, labels = self.annotations(key), self.labels(key)
        name = (
            annotations.get("mooring.dev/gang-name")
            or annotations.get("scheduling.k8s.io/group-name")
            or labels.get("scheduling.x-k8s.io/pod-group")
        )
        return f"{key.partition('/')[0]}/{name}" if name else ""

    def minimum(self, gang: str) -> int:
        if gang in self.minimums:
            return self.minimums[gang]
        member = next(key for key in self.pods if self.gang(key) == gang)
        return int(self.annotations(member)["mooring.dev/gang-minimum"])

    def priority(self, key: str) -> int:
        return int(self.pods[key]["spec"].get("priority") or 0)

    def is_simple(self, key: str) -> bool:
        """Whether it matters not where other pods are."""
        return not any(self.pods[key]["spec"].get(part) for part in SPREAD_AND_AFFINITY)

    # What a node has left.

    def on(self, node: str, gone: Gone = NOBODY) -> list[str]:
        return [key for key, where in self.running.items() if where == node and key not in gone and key in self.pods]

    def free(self, node: str, gone: Gone = NOBODY) -> dict[str, int]:
        room, there = self.nodes[node]["status"]["allocatable"], self.on(node, gone)
        whole = sum(int(self.limits(key).get("nvidia.com/gpu", 0)) for key in there) if "nvidia.com/gpu" in room else 0
        return {
            "cpu": milli(room["cpu"]) - sum(map(self.cpu, there)),
            "memory": gibibytes(room["memory"]) - len(there),
            "pods": int(room["pods"]) - len(there),
            "gpu": int(room.get("nvidia.com/gpu", 0)) - whole,
        }

    def overdrawn(self, node: str) -> list[str]:
        return [f"{name} of {node}" for name, left in self.free(node).items() if left < 0]

    # Whether a pod may go there.

    def is_open(self, key: str, node: str) -> bool:
        spec, pod = self.nodes[node].get("spec") or {}, self.pods[key]["spec"]
        tolerates = any(found.get("key") == "broken" for found in pod.get("tolerations") or [])
        if spec.get("unschedulable") or (spec.get("taints") and not tolerates):
            return False
        return self.is_selected(key, node)

    def is_selected(self, key: str, node: str) -> bool:
        labels = self.nodes[node]["metadata"]["labels"]
        wanted = self.pods[key]["spec"].get("nodeSelector") or {}
        return all(labels.get(name) == value for name, value in wanted.items())

    def domain(self, node: str, topology: str) -> str:
        return str(self.nodes[node]["metadata"]["labels"][topology])

    def matching(self, namespace: str, term: Json, gone: Gone) -> Iterator[str]:
        wanted = term["labelSelector"]["matchLabels"]
        for key in self.running:
            is_there = key not in gone and key in self.pods and self.running[key] in self.nodes
            if is_there and key.startswith(f"{namespace}/") and self.selects(wanted, key):
                yield key

    def selects(self, wanted: Json, key: str) -> bool:
        return all(self.labels(key).get(name) == value for name, value in wanted.items())

    def terms(self, key: str, kind: str) -> list[Json]:
        affinity = (self.pods[key]["spec"].get("affinity") or {}).get(kind) or {}
        return affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or []

    def keeps_its_distance(self, key: str, node: str, gone: Gone = NOBODY) -> bool:
        """Affinity, anti-affinity in both directions, and spread."""
        namespace = key.partition("/")[0]
        for term in self.terms(key, "podAntiAffinity"):
            place = self.domain(node, term["topologyKey"])
            if any(
                self.domain(self.running[other], term["topologyKey"]) == place
                for other in self.matching(namespace, term, gone)
            ):
                return False
        for other, where in self.running.items():
            if other in gone or other not in self.pods or where not in self.nodes:
                continue
            for term in self.terms(other, "podAntiAffinity"):
                concerns = other.partition("/")[0] == namespace and self.selects(
                    term["labelSelector"]["matchLabels"], key
                )
                if concerns and self.domain(where, term["topologyKey"]) == self.domain(node, term["topologyKey"]):
                    return False
        for term in self.terms(key, "podAffinity"):
            others = [
                self.domain(self.running[other], term["topologyKey"]) for other in self.matching(namespace, term, gone)
            ]
            is_first = not others and self.selects(term["labelSelector"]["matchLabels"], key)
            if self.domain(node, term["topologyKey"]) not in others and not is_first:
                return False
        return all(
            self._is_spread(key, node, found, gone)
            for found in self.pods[key]["spec"].get("topologySpreadConstraints") or []
        )

    def _is_spread(self, key: str, node: str, constraint: Json, gone: Gone) -> bool:
        topology = constraint["topologyKey"]
        eligible = [found for found in self.nodes if self.is_selected(key, found)]
        counts = {self.domain(found, topology): 0 for found in eligible}
        for other in self.matching(key.partition("/")[0], constraint, gone):
            if self.running[other] in eligible:
                counts[self.domain(self.running[other], topology)] += 1
        here = counts.get(self.domain(node, topology))
        return here is not None and here + 1 - min(counts.values()) <= constraint["maxSkew"]

    # How many of such pods it takes.

    def fits(self, key: str, node: str, gone: Gone = NOBODY) -> bool:
        return self.capacity(key, node, gone) > 0 and self.keeps_its_distance(key, node, gone)

    def capacity(self, key: str, node: str, gone: Gone = NOBODY) -> int:
        """How many pods like this one the node surely takes, wherever others are."""
        if not self.is_open(key, node):
            return 0
        free = self.free(node, gone)
        room = min(free["cpu"] // max(1, self.cpu(key)), free["memory"], free["pods"])
        if self.pods[key]["spec"]["containers"][0].get("ports"):
            taken = any(self.pods[other]["spec"]["containers"][0].get("ports") for other in self.on(node, gone))
            room = min(room, 0 if taken else 1)
        return max(0, min(room, self._devices(key, node, gone)))

    def _devices(self, key: str, node: str, gone: Gone) -> int:
        limits, fraction, claim = self.limits(key), self.annotations(key).get("gpu-fraction"), self.claim(key)
        kind = self.nodes[node]["metadata"]["labels"]["kind"]
        if claim:
            return self._claimable(claim, node, gone)
        if "nvidia.com/gpumem" in limits:
            return self._hami_shares(limits, node, gone) if kind == "hami" else 0
        if fraction or "nvidia.com/gpu" in limits:
            return (
                self._counted(float(fraction or 0), int(limits.get("nvidia.com/gpu", 0)), node, gone)
                if kind == "counted"
                else 0
            )
        if "koordinator.sh/gpu-core" in limits:
            asked = int(limits["koordinator.sh/gpu-core"])
            return (
                sum(int(100 - used + 1e-6) // asked for used in self._cores(node, gone)) if kind == "koordinator" else 0
            )
        profile = next((name.partition("mig-")[2] for name in limits if "mig-" in name), "")
        if profile:
            return self._cuttable(profile, node, gone) if kind == "mig" else 0
        if "cpu" in limits and kind == "numa":
            taken = set[int]().union(*(self.cpus.get(other, set()) for other in self.on(node, gone)))
            return sum((4 - len(taken & set(range(first, first + 4)))) // int(limits["cpu"]) for first in (0, 4))
        return 1_000_000

    def _on_cards(self, node: str, gone: Gone) -> dict[int, list[Share]]:
        there = set(self.on(node, gone))
        return {
            card: [found for found in shares if found.pod in there] for card, shares in self.cards.get(node, {}).items()
        }

    def card_count(self, node: str) -> int:
        metadata, room = self.nodes[node]["metadata"], self.nodes[node]["status"]["allocatable"]
        match metadata["labels"]["kind"]:
            case "hami":
                return len(json.loads(metadata["annotations"]["hami.io/node-nvidia-register"]))
            case "koordinator":
                return int(room["koordinator.sh/gpu-core"]) // 100
        return int(room.get("nvidia.com/gpu", 0))

    def _cores(self, node: str, gone: Gone) -> list[float]:
        """Of each card what is taken of its compute, in percent."""
        shares = self._on_cards(node, gone)
        return [sum(found.cores for found in shares.get(card, [])) for card in range(self.card_count(node))]

    def _counted(self, fraction: float, whole: int, node: str, gone: Gone) -> int:
        shared = [used for used in self._cores(node, gone) if used]
        idle = self.free(node, gone)["gpu"] - len(shared)
        if whole:
            return max(0, idle) // whole
        each = round(100 * fraction)
        return max(0, idle) * (100 // each) + sum(int(100 - used + 1e-6) // each for used in shared)

    def _hami_shares(self, limits: Json, node: str, gone: Gone) -> int:
        memory, cores = int(limits["nvidia.com/gpumem"]), int(limits["nvidia.com/gpucores"])
        shares, count = self._on_cards(node, gone), int(limits["nvidia.com/gpu"])
        room = []
        for card in range(self.card_count(node)):
            there = shares.get(card, [])
            left = (
                (16_000 - sum(found.memory for found in there)) // memory,
                int(100 - sum(found.cores for found in there) + 1e-6) // cores,
                SLOTS - len(there),
            )
            room.append(0 if cores == 100 and there else max(0, min(left)))
        return sum(room) if count == 1 else min(1, sum(found > 0 for found in room) // count)

    def _cuttable(self, profile: str, node: str, gone: Gone) -> int:
        length, starts = MIG_STARTS[profile]
        shares, found = self._on_cards(node, gone), 0
        for card in range(self.card_count(node)):
            taken = self.slices_taken(shares.get(card, []))
            found += sum(not taken & set(range(start, start + length)) for start in starts)
        # Instances beside one another may have more compute than the GPU: of several at once this is not sure.
        return min(1, found)

    def slices_taken(self, shares: Iterable[Share]) -> set[int]:
        taken = set[int]()
        for share in shares:
            length = MIG_STARTS[share.profile][0] if share.profile else 8
            taken |= set(range(max(0, share.start), max(0, share.start) + length))
        return taken

    # Devices that are claimed.

    def published(self, node: str) -> dict[str, Json]:
        return {
            f"{node}/{device['name']}": device
            for found in self.slices.values()
            if found["spec"]["nodeName"] == node
            for device in found["spec"].get("devices") or []
        }

    def held(self, node: str, gone: Gone = NOBODY) -> Counter[str]:
        """By device how many GiB are taken of it, or 1000 where all of it is."""
        held = Counter[str]()
        for key in self.on(node, gone):
            for device, amount in self.devices.get(key, []):
                held[device] += amount or 1000
        return held

    def counters(self, node: str, gone: Gone = NOBODY) -> Counter[str]:
        """By card how many of its four parts are drawn."""
        drawn, there = Counter[str](), self.published(node)
        for device in self.held(node, gone):
            for consumed in there.get(device, {}).get("consumesCounters") or []:
                drawn[consumed["counterSet"]] += int(consumed["counters"]["parts"]["value"])
        return drawn

    def _claimable(self, template: str, node: str, gone: Gone) -> int:
        if template == "either":
            return self._claimable("half", node, gone) or self._claimable("whole", node, gone)
        held, drawn = self.held(node, gone), self.counters(node, gone)
        published = self.published(node).items()
        if template in AMOUNTS:
            asked = AMOUNTS[template]
            return sum((8 - held[name]) // asked for name, found in published if self._kind(found) == "amount")
        kind, count = CLAIMS[template]
        found = 0
        for name, device in published:
            if self._kind(device) != kind or held[name]:
                continue
            consumed = {
                each["counterSet"]: int(each["counters"]["parts"]["value"])
                for each in device.get("consumesCounters") or []
            }
            if any(drawn[card] + parts > 4 for card, parts in consumed.items()):
                continue
            drawn.update(consumed)
            found += 1
        return found // count

    def _kind(self, device: Json) -> str:
        return str(device["attributes"]["kind"]["string"])

    # What is wrong.

    def wrong_with_devices(self) -> Iterator[str]:
        for node in self.nodes:
            there, held = self.published(node), self.held(node)
            for name, amount in held.items():
                most = 8 if name in there and self._kind(there[name]) == "amount" else 1000
                if name not in there:
                    continue  # withdrawn since
                if amount > most:
                    yield f"device {name} is given out for {amount} of {most}"
            yield from (
                f"{parts} of 4 parts of {card} of {node} are drawn"
                for card, parts in self.counters(node).items()
                if parts > 4
            )
            pinned = Counter(cpu for key in self.on(node) for cpu in self.cpus.get(key, ()))
            yield from (f"CPU {cpu} of {node} has {count} pods" for cpu, count in pinned.items() if count > 1)

    def wrong_with_cards(self) -> Iterator[str]:
        for node in self.nodes:
            yield from self._wrong_on(node)

    def _wrong_on(self, node: str) -> Iterator[str]:
        shares = self._on_cards(node, NOBODY)
        kind = self.nodes[node]["metadata"]["labels"]["kind"]
        for card, found in shares.items():
            if sum(share.cores for share in found) > 100.01:
                yield f"card {card} of {node} is given out beyond its compute: {found}"
            if kind == "mig":
                length = sum(len(self.slices_taken([share])) for share in found)
                if length != len(self.slices_taken(found)):
                    yield f"card {card} of {node} has instances that overlap: {found}"
            elif kind == "hami" and (sum(share.memory for share in found) > 16_000 or len(found) > SLOTS):
                yield f"card {card} of {node} is given out beyond its memory or slots: {found}"
        for key in self.on(node):
            has = [share for found in shares.values() for share in found if share.pod == key]
            limits, fraction = self.limits(key), self.annotations(key).get("gpu-fraction")
            if fraction and [share.cores for share in has] != [100 * float(fraction)]:
                yield f"{key} asks for {fraction} of a GPU and has {has}"
            if "koordinator.sh/gpu-core" in limits and sum(share.cores for share in has) != int(
                limits["koordinator.sh/gpu-core"]
            ):
                yield f"{key} asks for {limits} and has {has}"
            if "nvidia.com/gpumem" in limits and len(has) != int(limits["nvidia.com/gpu"]):
                yield f"{key} asks for {limits} and has {has}"
            profiles = [name.partition("mig-")[2] for name in limits if "mig-" in name]
            if profiles and kind == "mig" and [share.profile for share in has] != profiles:
                yield f"{key} asks for {profiles} and has {has}"
        if kind == "counted" and self.free(node)["gpu"] < sum(1 for found in shares.values() if found):
            yield f"{node} has more cards shared and handed out than it has"


def members(cluster: PlainCluster, keys: Sequence[str]) -> dict[str, list[str]]:
    """Those of gangs, by gang."""
    found = defaultdict[str, list[str]](list)
    for key in keys:
        if cluster.gang(key):
            found[cluster.gang(key)].append(key)
    return dict(found)
