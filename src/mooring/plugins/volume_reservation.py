"""What becomes of a pod's claims and volumes once its node is chosen, as events that can be taken back.

Whoever comes later must find the volume taken and the claim bound; a note on both says for which pod, so that nothing
else need be remembered to undo it.
"""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from mooring.model.api.meta import ObjectMeta
from mooring.model.api.volumes import ObjectReference, PersistentVolume, PersistentVolumeClaim
from mooring.model.defaults import BIND_COMPLETED
from mooring.model.events import Event, ObjectSeen
from mooring.plugins.volume_matching import SELECTED_NODE
from mooring.state.views import RelatedView

RESERVED_FOR = "mooring.dev/reserved-for"


def reserve_volumes(
    related: RelatedView, pod: str, node: str, *, bind: Sequence[tuple[str, str]], provision: Sequence[str]
) -> Iterator[Event]:
    """Bind claims to volumes that are there, and have the others made on the node."""
    for key, name in bind:
        claim, volume = related.persistent_volume_claims[key], related.persistent_volumes[name]
        reference = volume.spec.claim_ref or ObjectReference(
            kind="PersistentVolumeClaim",
            namespace=claim.metadata.namespace,
            name=claim.metadata.name,
            uid=claim.metadata.uid,
        )
        # A volume that named its claim beforehand keeps doing so, whatever becomes of the pod.
        notes = {} if volume.spec.claim_ref else {RESERVED_FOR: pod}
        yield ObjectSeen(_noted(replace(volume, spec=replace(volume.spec, claim_ref=reference)), notes))
        bound = replace(claim, spec=replace(claim.spec, volume_name=name))
        yield ObjectSeen(_noted(bound, {RESERVED_FOR: pod, BIND_COMPLETED: "yes"}))
    for key in provision:
        claim = related.persistent_volume_claims[key]
        if SELECTED_NODE not in (claim.metadata.annotations or {}):
            yield ObjectSeen(_noted(claim, {RESERVED_FOR: pod, SELECTED_NODE: node}))


def release_volumes(related: RelatedView, pod: str, claims: Sequence[str]) -> Iterator[Event]:
    """Take back what was reserved for a pod."""
    for key in claims:
        claim = related.persistent_volume_claims.get(key)
        if claim is None or not _is_reserved(claim.metadata, pod):
            continue
        volume = related.persistent_volumes.get(claim.spec.volume_name)
        if volume is not None and _is_reserved(volume.metadata, pod):
            yield ObjectSeen(_forgotten(replace(volume, spec=replace(volume.spec, claim_ref=None))))
        yield ObjectSeen(_forgotten(replace(claim, spec=replace(claim.spec, volume_name=""))))


def _is_reserved(metadata: ObjectMeta, pod: str) -> bool:
    return (metadata.annotations or {}).get(RESERVED_FOR) == pod


def _noted(
    found: PersistentVolume | PersistentVolumeClaim, notes: dict[str, str]
) -> PersistentVolume | PersistentVolumeClaim:
    annotations = {**(found.metadata.annotations or {}), **notes} or None
    return replace(found, metadata=replace(found.metadata, annotations=annotations))


def _forgotten(found: PersistentVolume | PersistentVolumeClaim) -> PersistentVolume | PersistentVolumeClaim:
    ours = (RESERVED_FOR, BIND_COMPLETED, SELECTED_NODE)
    kept = {key: value for key, value in (found.metadata.annotations or {}).items() if key not in ours}
    return replace(found, metadata=replace(found.metadata, annotations=kept or None))
