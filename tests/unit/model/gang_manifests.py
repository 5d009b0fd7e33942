"""Reads manifests as users write them, for the tests of gang dialects."""

from typing import Any

import pytest
import yaml

from mooring.errors import ManifestError
from mooring.model.api.pods import Pod
from mooring.model.gangs.gang import Gang
from mooring.model.gangs.membership import membership
from mooring.model.loading.manifests import Manifests, build_manifests


def read(text: str) -> Manifests:
    return build_manifests(yaml.safe_load_all(text), "a.yaml")


def refusal(text: str) -> str:
    """The one line with which manifests are refused, without the file's name."""
    with pytest.raises(ManifestError) as caught:
        read(text)
    message = str(caught.value)
    assert message.startswith("a.yaml: document ")
    return message.removeprefix("a.yaml: document ")


def only_gang(manifests: Manifests) -> Gang:
    assert len(manifests.gangs) == 1, [gang.key for gang in manifests.gangs]
    return manifests.gangs[0]


def pod_named(manifests: Manifests, name: str) -> Pod:
    return next(pod for pod in manifests.pods if pod.metadata.name == name)


def memberships(manifests: Manifests) -> dict[str, Any]:
    """By the name of the pod: its gang without the kind, its role and its rank."""
    found = {}
    for pod in manifests.pods:
        belongs = membership(pod)
        assert belongs is not None, pod.metadata.name
        found[pod.metadata.name] = (belongs.gang.partition("/")[2], belongs.role, belongs.rank)
    return found
