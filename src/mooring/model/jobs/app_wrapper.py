"""AppWrapper of `workload.codeflare.dev` as a cluster has it: objects in one, which its controller makes on admission.

Manifests are read as the objects inside (`loading/app_wrapper.py`); here the wrapper itself is the job that queues.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from mooring.model.api.kueue_labels import POD_SET
from mooring.model.api.meta import KubeObject, ObjectMeta
from mooring.model.api.pods import Pod
from mooring.model.jobs.pod_sets import PodFinder, by_label

WRAPPER_GROUP, WRAPPER = "workload.codeflare.dev", "AppWrapper"
LABEL = f"{WRAPPER_GROUP}/appwrapper"
"""On every component, and on the pods of its pod sets: the name of the wrapper."""
IS_OVER = ("Succeeded", "Failed")
Json = dict[str, Any]
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


class DeclaredPodSet(KubeObject):
    path: str = ""
    """Where the pod template is, such as `template.spec.template`."""
    replicas: int | None = None


class Component(KubeObject):
    template: Json
    pod_sets: list[DeclaredPodSet] | None = None
    """For kinds whose pods are not known otherwise."""


class AppWrapperSpec(KubeObject):
    components: list[Component] = []
    suspend: bool = False


class AppWrapperStatus(KubeObject):
    phase: str = ""


class AppWrapper(KubeObject):
    api_version: str = f"{WRAPPER_GROUP}/v1beta2"
    kind: str = WRAPPER
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: AppWrapperSpec = msgspec.field(default_factory=AppWrapperSpec)
    status: AppWrapperStatus = msgspec.field(default_factory=AppWrapperStatus)


def is_wrapper_over(owner: AppWrapper) -> bool:
    return owner.status.phase in IS_OVER


def wrapper_members(owner: AppWrapper, pods: PodFinder) -> Mapping[str, list[Pod]]:
    return by_label(pods.labelled(owner.metadata.namespace, LABEL, owner.metadata.name), POD_SET)


def find_template(document: Json, path: str) -> Json | None:
    """The object at a path such as `spec.replicatedJobs[0].template.spec.template`; the document itself at none."""
    found: Any = document
    for field, index in _STEP.findall(path):
        try:
            found = found[field] if field else found[int(index)]
        except (KeyError, IndexError, TypeError):
            return None
    return found if isinstance(found, dict) else None
