"""AppWrappers as Kueue admits them: the pod sets of all that one wraps, in one workload."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from msgspec import structs

from mooring.model.api.kueue_labels import app_wrapper
from mooring.model.api.meta import ObjectMeta
from mooring.model.api.pods import Pod
from mooring.model.jobs.pod_sets import PodSetPlan


@dataclass(slots=True)
class Component:
    """One object in a wrapper, as pod sets; replicas of a set that are admitted one by one elsewhere are one here."""

    rank: tuple[int, ...]
    """Where it stood among all objects."""
    uid: str
    metadata: ObjectMeta
    plans: dict[str, PodSetPlan] = field(default_factory=dict)
    """By the path of their templates."""
    pods: dict[str, list[Pod]] = field(default_factory=dict)

    def add(self, pod_sets: Iterable[PodSetPlan], members: Mapping[str, Sequence[Pod]]) -> None:
        for plan in pod_sets:
            known = self.plans.get(plan.path)
            if known is not None:
                plan = replace(known, count=known.count + plan.count, reclaimable=known.reclaimable + plan.reclaimable)
            self.plans[plan.path] = plan
            self.pods.setdefault(plan.path, []).extend(members.get(plan.name, ()))


@dataclass(frozen=True, slots=True)
class Wrapper:
    """All that is admitted as one."""

    uid: str
    metadata: ObjectMeta
    pod_sets: list[PodSetPlan]
    members: dict[str, list[Pod]]
    """By the names of the pod sets."""


def gather_wrappers(components: Iterable[Component]) -> Iterator[Wrapper]:
    """Each wrapper with its components in their order, its pod sets named as AppWrapper's controller names them."""
    by_wrapper: dict[tuple[str, str], list[Component]] = {}
    for found in sorted(components, key=lambda found: found.rank):
        by_wrapper.setdefault((found.metadata.namespace, app_wrapper(found.metadata)), []).append(found)
    for (_, name), inside in by_wrapper.items():
        plans = [(plan, found.pods[path]) for found in inside for path, plan in found.plans.items()]
        named = [(replace(plan, name=f"{name}-ps-{index}"), pods) for index, (plan, pods) in enumerate(plans)]
        first = inside[0]
        metadata = structs.replace(first.metadata, name=name, uid="", owner_references=None)
        yield Wrapper(first.uid, metadata, [plan for plan, _ in named], {plan.name: pods for plan, pods in named})
