"""New pods as Koordinator's webhooks would have them: what ClusterColocationProfiles fill in, and who is refused."""

import zlib
from collections.abc import Sequence

import msgspec

from mooring.model.api.colocation_profile import ClusterColocationProfile
from mooring.model.api.meta import Labels
from mooring.model.api.pods import Pod, PodSpec
from mooring.model.colocation.pod_rules import colocation_errors, refusal_text
from mooring.model.colocation.profiles import ProfileError, Surroundings, mutate_pod
from mooring.model.defaults import NAMESPACE_NAME_LABEL
from mooring.model.places import Place
from mooring.model.priorities import Priorities
from mooring.model.quotas.admission import is_new
from mooring.model.quotas.refusals import Refusal, object_key

WEBHOOK = 'admission webhook "vpod.koordinator.sh" denied the request'
PLUGIN = "ClusterColocationProfile"
EXPECTED = {
    "spec.priorityClassName": "the name of a PriorityClass that is there",
    "spec.patch": "a strategic merge patch after which a pod is still one",
}
_Texts = tuple[tuple[str, str], ...]
_Key = tuple[int, str, _Texts, _Texts, tuple[int, ...]]
Placed = Sequence[tuple[ClusterColocationProfile, Place]]


class ProfiledPods:
    """Changes pods in place, those of one template and equal labels once for all."""

    def __init__(self, profiles: Placed, namespaces: dict[str, Labels], priorities: Priorities) -> None:
        self._places = {profile.metadata.name: (profile, place) for profile, place in profiles}
        self._namespaces = dict(namespaces)
        self._around = Surroundings(tuple(profile for profile, _ in profiles), self._namespaces, priorities.by_name)
        self._drawn = [profile.metadata.name for profile, _ in profiles if profile.spec.probability is not None]
        self._known: dict[_Key, tuple[PodSpec, Pod, str]] = {}
        """With the spec that it was made from, whose id is good while it is there."""
        self._specs: dict[tuple[int, bytes], PodSpec] = {}

    def apply(self, pods: Sequence[Pod]) -> list[Refusal]:
        """Let the profiles speak on all pods that nobody has created before; return those that are refused."""
        refused = []
        for pod in pods:
            if is_new(pod):
                reason = self._apply(pod)
                if reason:
                    message = f"{WEBHOOK}: {reason}"
                    refused.append(Refusal(object_key(pod), message, message, PLUGIN, pod))
        return refused

    def _apply(self, pod: Pod) -> str:
        metadata = pod.metadata
        # A namespace that no manifest describes is there all the same, with the label that each has.
        self._namespaces.setdefault(metadata.namespace, {NAMESPACE_NAME_LABEL: metadata.namespace})
        draws = tuple(_draw(name, pod) for name in self._drawn)
        key = id(pod.spec), metadata.namespace, _texts(metadata.labels), _texts(metadata.annotations), draws
        if key not in self._known:
            mutated = self._mutated(pod)
            self._known[key] = pod.spec, mutated, refusal_text(colocation_errors(mutated))
        _, mutated, reason = self._known[key]
        metadata.labels, metadata.annotations = mutated.metadata.labels, mutated.metadata.annotations
        pod.spec = mutated.spec
        return reason

    def _mutated(self, pod: Pod) -> Pod:
        document = {"metadata": msgspec.to_builtins(pod.metadata), "spec": msgspec.to_builtins(pod.spec)}
        try:
            mutated = mutate_pod(document, self._around, lambda name: _draw(name, pod))
        except ProfileError as error:
            profile, place = self._places[error.profile]
            expected = EXPECTED[error.field]
            raise place.error(error.field, expected=expected, found=error.found, subject=profile) from error
        found = msgspec.convert(mutated, Pod)
        # Pods whose labels alone differ go on sharing one spec.
        found.spec = self._specs.setdefault((id(pod.spec), msgspec.json.encode(found.spec)), found.spec)
        return found


def _texts(held: Labels | None) -> _Texts:
    return tuple(sorted((held or {}).items()))


def _draw(profile: str, pod: Pod) -> int:
    """A number of 0 to 99 that is the same each time for one profile and pod."""
    return zlib.crc32(f"{profile} {pod.metadata.namespace}/{pod.metadata.name}".encode()) % 100
