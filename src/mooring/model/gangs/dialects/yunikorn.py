"""Task groups of YuniKorn's applications: annotations by which pods of one application start together.

One pod at least says how many of each task group are needed (`task-groups`), and each names its own
(`task-group-name`). YuniKorn holds the room by placeholder pods; here it has to be free when the application starts. So
a task group of which no pod is there yet, as the executors of a driver that is to create them, is not waited for, but
there must be room for it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from mooring.model.api.meta import Resources, timestamp_seconds
from mooring.model.api.pods import Pod
from mooring.model.gangs.gang import Gang, Membership, Role
from mooring.model.gangs.membership import TASK_GROUPS
from mooring.model.keys import GangKey
from mooring.model.places import show
from mooring.model.validation.terms import Subject
from mooring.model.values.quantity import QuantityError, parse_quantity

_EXPECTED = 'a list of task groups in JSON, such as [{"name": "workers", "minMember": 4, "minResource": {"cpu": "1"}}]'


class TaskGroup(msgspec.Struct, rename="camel"):
    name: str
    min_member: int
    min_resource: dict[str, str | int | float] = {}


def check_task_groups(subject: Subject, path: str, annotations: Mapping[str, str]) -> None:
    """Refuse task groups that cannot be read."""
    text = annotations.get(TASK_GROUPS)
    if text is not None and _task_groups(text) is None:
        subject.refuse(f"{path}.{TASK_GROUPS}", expected=_EXPECTED, found=show(text))


def _task_groups(text: str) -> list[TaskGroup] | None:
    try:
        groups = msgspec.json.decode(text, type=list[TaskGroup])
        amounts = [parse_quantity(str(value)) for group in groups for value in group.min_resource.values()]
    except (msgspec.DecodeError, msgspec.ValidationError, QuantityError):
        return None
    names = [group.name for group in groups]
    is_good = all(names) and len(set(names)) == len(names) and min(amounts, default=0) >= 0
    return groups if is_good and all(0 <= group.min_member < 2**31 for group in groups) else None


def task_group_gang(key: GangKey, members: Iterable[tuple[Pod, Membership]]) -> Gang:
    """The gang of an application; without task groups that can be read its pods start one by one."""
    pods = list(members)
    _, namespace, name = key.split("/", 2)
    texts = ((pod.metadata.annotations or {}).get(TASK_GROUPS) for pod, _ in pods)
    groups = _task_groups(next((text for text in texts if text), "[]")) or []
    there = {membership.role for _, membership in pods}
    roles = tuple(Role(group.name, group.min_member) for group in groups if group.name in there and group.min_member)
    times = (timestamp_seconds(pod.metadata.creation_timestamp) for pod, _ in pods)
    return Gang(
        key=key,
        name=f"{namespace}/{name}",
        minimum=max(1, sum(role.minimum for role in roles)),
        roles=roles,
        min_resources=_min_resources(groups),
        created=min((time for time in times if time is not None), default=None),
        evicted_whole=False,
        once_satisfied=True,
    )


def _min_resources(groups: Iterable[TaskGroup]) -> Resources | None:
    """What all task groups ask for together, in plain numbers."""
    total = Counter[str]()
    for group in groups:
        for name, value in group.min_resource.items():
            total[name] += parse_quantity(str(value)) * group.min_member
    return {name: f"{amount}n" for name, amount in total.items()} or None
