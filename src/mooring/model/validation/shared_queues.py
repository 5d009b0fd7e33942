"""Checks of KAI's queues and of ElasticQuotas: each on its own, then the tree of all of them."""

from collections.abc import Iterable
from typing import Any

import msgspec

from mooring.model.api.elastic_quota import NAMESPACES, PARENT, SHARED_WEIGHT, TOTAL, ElasticQuota
from mooring.model.api.kai_queue import NO_LIMIT, KaiQueue, KaiResource, KaiResources
from mooring.model.places import Place, show
from mooring.model.validation.terms import Subject, check_resources
from mooring.model.values.durations import EXPECTED_DURATION, parse_duration
from mooring.model.values.quantity import parse_quantity


def check_kai_queue(subject: Subject, queue: KaiQueue) -> None:
    """Refuse what makes no sense in a queue as such."""
    resources = queue.spec.resources or KaiResources()
    for name in ("gpu", "cpu", "memory"):
        given: KaiResource = getattr(resources, name)
        for field, value in (("quota", given.quota), ("limit", given.limit)):
            if value != NO_LIMIT and not 0 <= value < 1e15:
                subject.refuse(
                    f"spec.resources.{name}.{field}", expected="a number, or -1 for no limit", found=show(value)
                )
        if not 0 <= given.over_quota_weight < 1e9:
            found = show(given.over_quota_weight)
            subject.refuse(f"spec.resources.{name}.overQuotaWeight", expected="a number of at least 0", found=found)
    for field, text in (
        ("preemptMinRuntime", queue.spec.preempt_min_runtime),
        ("reclaimMinRuntime", queue.spec.reclaim_min_runtime),
    ):
        if text is not None and parse_duration(text) is None:
            subject.refuse(f"spec.{field}", expected=EXPECTED_DURATION, found=show(text))


def check_kai_tree(queues: Iterable[tuple[KaiQueue, Place]]) -> None:
    """Refuse parents that are not there, and queues that go in a circle."""
    placed = {queue.metadata.name: (queue, place) for queue, place in queues}
    for queue, place in placed.values():
        parent, seen = queue.spec.parent_queue, {queue.metadata.name}
        if parent and parent not in placed:
            raise place.error("spec.parentQueue", expected="the name of a queue", found=show(parent), subject=queue)
        while parent:
            if parent in seen:
                expected = "a queue that is not below this one"
                raise place.error("spec.parentQueue", expected=expected, found=f"a cycle over {parent}", subject=queue)
            seen.add(parent)
            parent = placed[parent][0].spec.parent_queue


def check_elastic_quota(subject: Subject, quota: ElasticQuota) -> None:
    """Refuse what makes no sense in a quota as such."""
    for field, amounts in (("spec.min", quota.spec.min), ("spec.max", quota.spec.max)):
        check_resources(subject, field, amounts or {})
    for name, text in (quota.spec.min or {}).items():
        limit = (quota.spec.max or {}).get(name)
        if limit is not None and parse_quantity(text) > parse_quantity(limit):
            subject.refuse(f"spec.min.{name}", expected=f"at most its max ({limit})", found=show(text))
    for annotation in (SHARED_WEIGHT, TOTAL):
        field = f"metadata.annotations.{annotation}"
        amounts = _decoded(subject, field, quota, dict[str, str | int | float], 'amounts by resource: {"cpu": 10}')
        check_resources(subject, field, {name: str(value) for name, value in (amounts or {}).items()})
    _decoded(subject, f"metadata.annotations.{NAMESPACES}", quota, list[str], 'namespaces: ["team-a", "team-b"]')


def _decoded(subject: Subject, field: str, quota: ElasticQuota, type_: Any, expected: str) -> Any:
    """What an annotation holds as JSON; None if it is not there."""
    text = (quota.metadata.annotations or {}).get(field.removeprefix("metadata.annotations."), "")
    try:
        return msgspec.json.decode(text, type=type_) if text else None
    except (msgspec.DecodeError, msgspec.ValidationError):
        return subject.refuse(field, expected=expected, found=show(text))


def check_quota_tree(quotas: Iterable[tuple[ElasticQuota, Place]]) -> None:
    """Refuse parents that are not there, quotas that go in a circle, and two for one namespace without a tree."""
    placed = {quota.metadata.name: (quota, place) for quota, place in quotas}
    for quota, place in placed.values():
        parent, seen = quota.parent, {quota.metadata.name}
        field = f"metadata.labels.{PARENT}"
        if parent and parent not in placed:
            raise place.error(field, expected="the name of an ElasticQuota", found=show(parent), subject=quota)
        while parent:
            if parent in seen:
                expected = "a quota that is not below this one"
                raise place.error(field, expected=expected, found=f"a cycle over {parent}", subject=quota)
            seen.add(parent)
            parent = placed[parent][0].parent
