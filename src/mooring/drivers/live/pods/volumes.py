"""What has to happen to a pod's volumes before it is bound: the plugins have reserved them, here it is made so.

A volume that is there is given to the claim; for one that is yet to be made, the claim is told the node. Then we wait
until the volume controllers have done their part.
"""

import asyncio
import time
from typing import Any

import msgspec

from mooring.drivers.live.api.client import MERGE_PATCH, ApiError, Client
from mooring.drivers.live.api.requests import encode
from mooring.model.api.pods import Pod
from mooring.model.api.volumes import PersistentVolumeClaim
from mooring.plugins.volume_matching import SELECTED_NODE
from mooring.plugins.volume_reservation import RESERVED_FOR
from mooring.state.related import RelatedObjects

LOOK_SECONDS = 0.25
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"


class _ClaimStatus(msgspec.Struct):
    phase: str = ""


class _Claim(msgspec.Struct):
    status: _ClaimStatus = msgspec.field(default_factory=_ClaimStatus)


_decode_claim = msgspec.json.Decoder(_Claim).decode


def reserved_claims(pod: Pod, related: RelatedObjects) -> list[PersistentVolumeClaim]:
    """The claims of a pod that something was reserved for and that are not bound yet."""
    if not pod.spec.volumes:
        return []
    names = [
        volume.persistent_volume_claim.claim_name
        if volume.persistent_volume_claim is not None
        else f"{pod.metadata.name}-{volume.name}"
        for volume in pod.spec.volumes
        if volume.persistent_volume_claim is not None or volume.ephemeral is not None
    ]
    claims = (related.persistent_volume_claims.get(f"{pod.metadata.namespace}/{name}") for name in names)
    return [claim for claim in claims if claim is not None and _is_reserved(claim, pod)]


def _is_reserved(claim: PersistentVolumeClaim, pod: Pod) -> bool:
    return (claim.metadata.annotations or {}).get(RESERVED_FOR) == pod.key


async def bind_volumes(client: Client, claims: list[PersistentVolumeClaim], node: str, seconds: float) -> str:
    """Have the volumes of these claims bound; return why that failed, or nothing."""
    try:
        for claim in claims:
            await _ask_for(client, claim, node)
        deadline = time.monotonic() + seconds
        for claim in claims:
            while not await _is_bound(client, claim):
                if time.monotonic() > deadline:
                    return f"timed out waiting for PersistentVolumeClaim {claim.metadata.name} to be bound"
                await asyncio.sleep(LOOK_SECONDS)
    except ApiError as error:
        return error.message
    return ""


async def _ask_for(client: Client, claim: PersistentVolumeClaim, node: str) -> None:
    metadata = claim.metadata
    if claim.spec.volume_name:
        reference = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": metadata.namespace,
            "name": metadata.name,
            "uid": metadata.uid,
        }
        change: dict[str, Any] = {
            "metadata": {"annotations": {BOUND_BY_CONTROLLER: "yes"}},
            "spec": {"claimRef": reference},
        }
        path = f"/api/v1/persistentvolumes/{claim.spec.volume_name}"
    else:
        change = {"metadata": {"uid": metadata.uid, "annotations": {SELECTED_NODE: node}}}
        path = _path(claim)
    await client.request("PATCH", path, encode(change), MERGE_PATCH)


async def _is_bound(client: Client, claim: PersistentVolumeClaim) -> bool:
    try:
        return _decode_claim(await client.get(_path(claim))).status.phase == "Bound"
    except ApiError as error:
        if error.is_passing:
            return False
        raise


def _path(claim: PersistentVolumeClaim) -> str:
    return f"/api/v1/namespaces/{claim.metadata.namespace}/persistentvolumeclaims/{claim.metadata.name}"
