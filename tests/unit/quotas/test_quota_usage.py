"""Quotas as a driver uses them: check, charge, release, one object at a time."""

import msgspec
from msgspec.structs import replace
from quota_documents import Document, asking, claim, quota

from mooring.model.api.meta import ObjectMeta
from mooring.model.api.pods import Pod, PodStatus
from mooring.model.api.volumes import PersistentVolumeClaim
from mooring.model.quotas.by_spec import MOST_KEPT, BySpec
from mooring.model.quotas.namespace_quotas import NamespaceQuotas
from mooring.model.quotas.objects import CoreResourceQuota
from mooring.testing.builders import make_pod


def quotas(*documents: Document) -> NamespaceQuotas:
    return NamespaceQuotas([msgspec.convert(document, CoreResourceQuota) for document in documents])


def used(found: NamespaceQuotas, name: str = "team-a") -> dict[str, str]:
    return {resource: str(amount) for resource, amount in found.used()[name].items()}


def test_what_is_charged_is_used_until_it_is_released() -> None:
    found = quotas(quota({"requests.cpu": "4", "pods": "5"}))
    first, second = make_pod("a", cpu=3), make_pod("b", cpu=2)

    assert found.check(first) is None
    found.charge(first)
    assert used(found) == {"requests.cpu": "3", "pods": "1"}
    assert found.check(second) == (
        'pods "b" is forbidden: exceeded quota: team-a, requested: requests.cpu=2, used: requests.cpu=3, '
        "limited: requests.cpu=4"
    )
    found.release(first.key)
    assert used(found) == {"requests.cpu": "0", "pods": "0"}
    assert found.check(second) is None


def test_checking_changes_nothing() -> None:
    found = quotas(quota({"requests.cpu": "4"}))

    for _ in range(9):
        assert found.check(make_pod("a", cpu=1)) is None

    assert used(found) == {"requests.cpu": "0"}


def test_an_object_charged_again_counts_as_it_is_now() -> None:
    found = quotas(quota({"requests.cpu": "4", "pods": "5", "count/pods": "5"}))
    running = make_pod("a", cpu=3)

    found.charge(running)
    found.charge(replace(running, status=PodStatus(phase="Succeeded")))

    assert used(found) == {"requests.cpu": "0", "pods": "0", "count/pods": "1"}


def test_releasing_what_is_not_known_is_no_fault() -> None:
    found = quotas(quota({"pods": "5"}))
    found.charge(make_pod("a"))

    found.release("default/other")
    found.release("default/a")
    found.release("default/a")

    assert used(found) == {"pods": "0"}


def test_other_objects_are_released_by_their_resource() -> None:
    found = quotas(quota({"requests.storage": "5Gi", "pods": "5"}))
    found.charge(msgspec.convert(claim("a", "2Gi"), PersistentVolumeClaim))
    found.charge(make_pod("a"))

    found.release("/a", "persistentvolumeclaims")

    assert used(found) == {"requests.storage": "0", "pods": "1"}


def test_each_quota_counts_the_pods_in_its_scope() -> None:
    found = quotas(quota({"pods": "5"}, "idle", scopes=["BestEffort"]), quota({"pods": "5"}, "all"))

    found.charge(make_pod("a"))
    found.charge(make_pod("b", cpu=1))

    assert used(found, "idle") == {"pods": "1"}
    assert used(found, "all") == {"pods": "2"}


def test_equal_specs_are_worked_out_once_and_different_ones_apart() -> None:
    asked: list[Pod] = []
    by_spec = BySpec(lambda spec: asked.append(Pod(spec=spec)) or len(asked))  # type: ignore[func-returns-value]
    one, equal = (msgspec.convert(asking("x", cpu=1), Pod) for _ in range(2))
    other = msgspec.convert(asking("x", cpu=2), Pod)

    answers = [by_spec.of(found.spec) for found in (one, equal, other, one)]

    assert answers == [1, 1, 2, 1]
    assert len(asked) == 2


def test_what_is_remembered_of_specs_does_not_grow_for_ever() -> None:
    by_spec = BySpec(lambda spec: spec.priority_class_name)
    pods = [Pod(metadata=ObjectMeta(name=f"p-{i}")) for i in range(MOST_KEPT + 10)]
    for i, found in enumerate(pods):
        found.spec.priority_class_name = f"class-{i}"

    assert [by_spec.of(found.spec) for found in pods] == [f"class-{i}" for i in range(len(pods))]
    assert len(by_spec._same) <= MOST_KEPT
    assert len(by_spec._equal) <= MOST_KEPT
