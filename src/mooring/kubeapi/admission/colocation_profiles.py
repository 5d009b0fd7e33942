"""ClusterColocationProfiles: new pods are changed and refused as Koordinator's webhooks do it, where there are any."""

import zlib

import msgspec

from mooring.kubeapi.api import Api
from mooring.kubeapi.requests import CREATE, Request
from mooring.kubeapi.status import ApiError, Object
from mooring.model.api.colocation_profile import ClusterColocationProfile
from mooring.model.api.pods import Pod
from mooring.model.api.policies import PriorityClass
from mooring.model.colocation.pod_rules import colocation_errors, refusal_text
from mooring.model.colocation.profiles import ProfileError, Surroundings, mutate_pod
from mooring.model.values.quantity import QuantityError
from mooring.model.values.requests import pod_requests

PROFILES = "clustercolocationprofiles.config.koordinator.sh"
CLASSES = "priorityclasses.scheduling.k8s.io"


class ColocationProfiles:
    def __init__(self, api: Api) -> None:
        self._api = api

    def _concerns(self, request: Request) -> bool:
        is_pod = request.operation == CREATE and request.resource.key == "pods" and not request.subresource
        return is_pod and bool(self._api.list(PROFILES)) and _is_readable(request.object)

    def mutate(self, request: Request) -> None:
        if not self._concerns(request):
            return
        metadata = request.object["metadata"]
        drawn = metadata.get("uid") or metadata.get("name") or ""
        try:
            around = self._surroundings(request.namespace)
            pod = {**request.object, "metadata": {**metadata, "namespace": request.namespace}}
            request.object = mutate_pod(pod, around, lambda name: zlib.crc32(f"{name} {drawn}".encode()) % 100)
        except ProfileError as error:
            why = f'admission webhook "mpod.koordinator.sh" denied the request: {error}'
            raise ApiError(400, "BadRequest", why) from error

    def _surroundings(self, namespace: str) -> Surroundings:
        found = self._api.find("namespaces", None, namespace)
        profiles = (_profile(stored) for stored in self._api.list(PROFILES))
        return Surroundings(
            tuple(profile for profile in profiles if profile is not None),
            {} if found is None else {namespace: found["metadata"].get("labels") or {}},
            {one["metadata"]["name"]: msgspec.convert(one, PriorityClass) for one in self._api.list(CLASSES)},
        )

    def validate(self, request: Request) -> None:
        if not self._concerns(request):
            return
        errors = colocation_errors(msgspec.convert(request.object, Pod))
        if errors:
            why = f'admission webhook "vpod.koordinator.sh" denied the request: {refusal_text(errors)}'
            raise ApiError(403, "Forbidden", why)


def _is_readable(pod: Object) -> bool:
    """Whether a pod is one at all: what is not, is refused by others."""
    try:
        pod_requests(msgspec.convert(pod, Pod))
    except (msgspec.ValidationError, QuantityError):
        return False
    return isinstance(pod.get("spec"), dict)


def _profile(stored: Object) -> ClusterColocationProfile | None:
    """A profile as it is stored; None for one from before it was checked that cannot be read: it stops nobody."""
    try:
        return msgspec.convert(stored, ClusterColocationProfile)
    except msgspec.ValidationError:
        return None
