"""What tests of gangs share: gangs and members in one line, and decisions in comparable form."""

from collections.abc import Iterable
from typing import Any

from mooring.engine.cycle import Scheduler
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.decisions import Bind, Decision, Evict, Wait
from mooring.model.events import GangSeen
from mooring.model.gangs.gang import Gang, gang_key
from mooring.model.gangs.membership import NATIVE_KIND, PLAIN_KIND
from mooring.model.keys import GangKey
from mooring.testing.builders import make_node, make_pod, make_scheduler

RACK, BLOCK = "example.com/rack", "example.com/block"
NO_PREEMPTION = {"plugins": {"postFilter": {"disabled": [{"name": "*"}]}}}


def make_gang(name: str = "train", minimum: int = 2, *, kind: str = PLAIN_KIND, **given: Any) -> Gang:
    return Gang(gang_key(kind, "default", name), f"default/{name}", minimum, **given)


def make_members(count: int, gang: str = "train", *, first: int = 0, **given: Any) -> list[Pod]:
    annotations = {"mooring.dev/gang-name": gang, **given.pop("annotations", {})}
    return [make_pod(f"{gang}-{i}", annotations=annotations, **given) for i in range(first, first + count)]


def make_role(role: str, count: int, gang: str = "train", **given: Any) -> list[Pod]:
    """Members with a role: of a gang of the kind VOLCANO_KIND."""
    annotations = {"scheduling.volcano.sh/group-name": gang, "volcano.sh/task-spec": role}
    return [make_pod(f"{role}-{i}", annotations=annotations, **given) for i in range(count)]


def make_part(name: str, minimum: int, parent: str = "all", **given: Any) -> Gang:
    """A gang inside another."""
    return make_gang(name, minimum, kind=NATIVE_KIND, parent=whole_key(parent), **given)


def make_whole(name: str = "all", minimum: int = 2, **given: Any) -> Gang:
    """A gang of gangs."""
    return Gang(whole_key(name), f"default/{name}", minimum, of_gangs=True, **given)


def whole_key(name: str) -> GangKey:
    return gang_key("CompositePodGroup.scheduling.k8s.io", "default", name)


def make_part_members(part: str, count: int, **given: Any) -> list[Pod]:
    spec = {"schedulingGroup": {"podGroupName": part}}
    return [make_pod(f"{part}-{i}", spec=spec, **given) for i in range(count)]


def rack_nodes(racks: dict[str, int], gpu: int = 2) -> list[Node]:
    """So many nodes in each rack; the first letter of a rack is its block."""
    return [
        make_node(f"{rack}-{i}", gpu=gpu, labels={RACK: rack, BLOCK: rack[0]})
        for rack, count in racks.items()
        for i in range(count)
    ]


def start(*gangs: Gang, **given: Any) -> Scheduler:
    scheduler = make_scheduler(**{"profile": NO_PREEMPTION, **given})
    scheduler.handle(*map(GangSeen, gangs))
    return scheduler


def bound(decisions: Iterable[Decision]) -> dict[str, str]:
    return {found.pod.partition("/")[2]: found.node for found in decisions if isinstance(found, Bind)}


def waiting(decisions: Iterable[Decision]) -> dict[str, str]:
    return {found.pod.partition("/")[2]: found.message for found in decisions if isinstance(found, Wait)}


def evicted(decisions: Iterable[Decision]) -> dict[str, str]:
    return {found.pod.partition("/")[2]: found.reason for found in decisions if isinstance(found, Evict)}
