"""Quotas and limits that the API server would refuse are refused here, with the field that is wrong."""

import pytest
from quota_documents import Document, limit_range, quota

from mooring.errors import ManifestError
from mooring.model.loading.manifests import build_manifests
from mooring.model.quotas.objects import CoreResourceQuota, LimitRange


def complaint(document: Document) -> str:
    with pytest.raises(ManifestError) as caught:
        build_manifests([document])
    return str(caught.value)


def selecting(scope: str, operator: str, *values: str) -> Document:
    expression = {"scopeName": scope, "operator": operator, "values": list(values)}
    return {"scopeSelector": {"matchExpressions": [expression]}}


START = "<memory>: document 1 (ResourceQuota default/team-a): "
EXPRESSION = "spec.scopeSelector.matchExpressions[0]"


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (quota({"pods": "-1"}), 'spec.hard.pods: expected a quantity of at least 0, found "-1"'),
        (quota({"pods": "1.5"}), 'spec.hard.pods: expected a whole number, found "1.5"'),
        (quota({"requests.cpu": "4x"}), "spec.hard.requests.cpu: expected a quantity such as 500m, 2 or 1.5Gi, found"),
        (quota({"gpu": 1}), "spec.hard.gpu: expected a resource that quotas know, such as requests.cpu"),
        (quota({"requests.gpu": 1}), "spec.hard.requests.gpu: expected a resource that quotas know"),
        (quota({"-bad-/x": 1}), "spec.hard.-bad-/x: expected a resource that quotas know"),
        (quota({"pods": 1}, scopes=["Finished"]), "spec.scopes[0]: expected one of Terminating, NotTerminating,"),
        (
            quota({"requests.cpu": 1}, scopes=["BestEffort"]),
            'spec.scopes[0]: expected a scope for requests.cpu, which spec.hard has, found "BestEffort"',
        ),
        (
            quota({"services": 1}, scopes=["NotTerminating"]),
            'spec.scopes[0]: expected a scope for services, which spec.hard has, found "NotTerminating"',
        ),
        (
            quota({"pods": 1}, scopes=["VolumeAttributesClass"]),
            'spec.scopes[0]: expected a scope for pods, which spec.hard has, found "VolumeAttributesClass"',
        ),
        (
            quota({"pods": 1}, scopes=["BestEffort", "NotBestEffort"]),
            "spec.scopes: expected BestEffort or NotBestEffort, found both",
        ),
        (
            quota({"pods": 1}, scopes=["Terminating", "NotTerminating"]),
            "spec.scopes: expected Terminating or NotTerminating, found both",
        ),
        (
            quota({"pods": 1}, **selecting("PriorityClass", "Contains", "high")),
            f'{EXPRESSION}.operator: expected one of In, NotIn, Exists, DoesNotExist, found "Contains"',
        ),
        (
            quota({"pods": 1}, **selecting("PriorityClass", "In")),
            f"{EXPRESSION}.values: expected at least one value for In, found none",
        ),
        (
            quota({"pods": 1}, **selecting("PriorityClass", "Exists", "high")),
            f"{EXPRESSION}.values: expected no values for Exists, found 1",
        ),
        (
            quota({"pods": 1}, **selecting("Terminating", "In", "x")),
            f'{EXPRESSION}.operator: expected Exists for Terminating, found "In"',
        ),
        (
            quota({"pods": 1}, **selecting("Sometimes", "Exists")),
            f"{EXPRESSION}.scopeName: expected one of Terminating,",
        ),
        (
            quota({"requests.storage": 1}, **selecting("PriorityClass", "Exists")),
            f"{EXPRESSION}.scopeName: expected a scope for requests.storage, which spec.hard has",
        ),
    ],
)
def test_a_bad_quota_is_refused(document: Document, said: str) -> None:
    message = complaint(document)

    assert message.startswith(START + said)


def test_good_quotas_are_accepted() -> None:
    names = (
        "cpu limits.memory requests.ephemeral-storage hugepages-1Gi requests.hugepages-2Mi requests.nvidia.com/gpu "
        "count/deployments.apps count/widgets.example.com gold.storageclass.storage.k8s.io/requests.storage "
        "services.nodeports secrets configmaps requests.deviceclass.resource.kubernetes.io/gpu"
    )
    documents = [
        quota(dict.fromkeys(names.split(), "1"), "all"),
        quota({"requests.cpu": "0.5", "requests.nvidia.com/gpu": 1}, "scoped", scopes=["NotBestEffort", "Terminating"]),
        quota({"requests.storage": 1}, "claims", **selecting("VolumeAttributesClass", "NotIn", "fast")),
        quota({}, "empty"),
    ]

    assert len(build_manifests(documents).of(CoreResourceQuota)) == 4


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ({}, "type: expected one of Pod, Container, PersistentVolumeClaim, found none"),
        ({"type": "Node"}, 'type: expected one of Pod, Container, PersistentVolumeClaim, found "Node"'),
        ({"type": "Container", "max": {"cpu": "-1"}}, 'max.cpu: expected a quantity of at least 0, found "-1"'),
        ({"type": "Container", "max": {"storage": 1}}, "max.storage: expected a resource of containers, such as cpu"),
        ({"type": "Pod", "default": {"cpu": 1}}, "default: expected no defaults for the type Pod, found cpu"),
        ({"type": "Pod", "defaultRequest": {"cpu": 1}}, "defaultRequest: expected no defaults for the type Pod"),
        (
            {"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1"}},
            'min.cpu: expected at most 1, which is max.cpu, found "2"',
        ),
        (
            {"type": "Container", "default": {"memory": "2Gi"}, "max": {"memory": "1Gi"}},
            'default.memory: expected at most 1Gi, which is max.memory, found "2Gi"',
        ),
        (
            {"type": "Container", "default": {"cpu": "1"}, "min": {"cpu": "2"}},
            'min.cpu: expected at most 1, which is default.cpu, found "2"',
        ),
        (
            {"type": "Container", "defaultRequest": {"cpu": "1"}, "min": {"cpu": "2"}},
            'min.cpu: expected at most 1, which is defaultRequest.cpu, found "2"',
        ),
        (
            {"type": "Container", "defaultRequest": {"cpu": "3"}, "max": {"cpu": "2"}},
            'defaultRequest.cpu: expected at most 2, which is max.cpu, found "3"',
        ),
        (
            {"type": "Container", "defaultRequest": {"cpu": "3"}, "default": {"cpu": "2"}},
            'defaultRequest.cpu: expected at most 2, which is default.cpu, found "3"',
        ),
        (
            {"type": "Container", "maxLimitRequestRatio": {"cpu": "0.5"}},
            'maxLimitRequestRatio.cpu: expected a ratio of at least 1, found "500m"',
        ),
        (
            {"type": "Container", "min": {"cpu": 1}, "max": {"cpu": 2}, "maxLimitRequestRatio": {"cpu": 3}},
            'maxLimitRequestRatio.cpu: expected a ratio of at most max/min = 2.000000, found "3"',
        ),
        (
            {"type": "Container", "max": {"nvidia.com/gpu": 4}, "defaultRequest": {"nvidia.com/gpu": 2}},
            "defaultRequest.nvidia.com/gpu: expected 4, the default limit, as nvidia.com/gpu cannot be overcommitted",
        ),
    ],
)
def test_a_bad_limit_is_refused(limit: Document, said: str) -> None:
    message = complaint(limit_range(limit))

    assert message.startswith(f"<memory>: document 1 (LimitRange default/limits): spec.limits[0].{said}")


def test_claims_need_a_bound_on_storage_and_each_type_stands_once() -> None:
    start = "<memory>: document 1 (LimitRange default/limits): "

    assert complaint(limit_range({"type": "PersistentVolumeClaim"})) == (
        f"{start}spec.limits[0]: expected min.storage or max.storage for the type PersistentVolumeClaim, found neither"
    )
    assert complaint(limit_range({"type": "Pod"}, {"type": "Container"}, {"type": "Pod"})) == (
        f'{start}spec.limits[2].type: expected a type that no other limit has, found "Pod"'
    )


def test_good_limits_are_accepted() -> None:
    limits = [
        {"type": "Container", "min": {"cpu": 0}, "max": {"cpu": 2}, "maxLimitRequestRatio": {"cpu": 4}},
        {"type": "Pod", "max": {"nvidia.com/gpu": 8, "hugepages-2Mi": "1Gi"}},
        {"type": "PersistentVolumeClaim", "max": {"storage": "1Ti"}},
        {"type": "example.com/Widget", "max": {"example.com/size": 3}},
    ]

    assert len(build_manifests([limit_range(*limits)]).of(LimitRange)) == 1
