"""What has to be written into a pod's ResourceClaims before it is bound: what they are allocated, and for whom."""

import asyncio
import time
from typing import Any

import msgspec

from mooring.drivers.live.api.backoff import Backoff
from mooring.drivers.live.api.client import ApiError, Client
from mooring.drivers.live.api.discovery import Resource
from mooring.drivers.live.api.requests import encode, pod_path
from mooring.model.api.pods import Pod
from mooring.model.decisions import ClaimReservation

FINALIZER = "resource.kubernetes.io/delete-protection"
EXTENDED = "resource.kubernetes.io/extended-resource-claim"
MOST_TRIES = 8
LOOK_SECONDS = 0.25


class ClaimRefused(Exception):
    """A claim cannot be had for a pod; the message says why."""


async def reserve_claims(client: Client, resource: Resource, pod: Pod, claims: tuple[ClaimReservation, ...]) -> str:
    """Allocate and reserve these claims for a pod; return why that failed, or nothing."""
    try:
        for reservation in claims:
            if reservation.spec is not None:
                await _create(client, resource, pod, reservation)
            if not reservation.template:
                await _reserve(client, resource, pod, reservation)
            if reservation.spec is not None:
                await client.patch(pod_path(pod, "status"), encode(_claimed(reservation)))
        began = time.monotonic()
        for reservation in claims:
            while not await _is_prepared(client, resource, reservation):
                if time.monotonic() > began + reservation.binding_seconds:
                    return f"claim {reservation.claim}: binding timeout exceeded"
                await asyncio.sleep(LOOK_SECONDS)
    except ApiError as error:
        return error.message
    except ClaimRefused as error:
        return str(error)
    return ""


async def release_claims(client: Client, resource: Resource, pod: Pod, claims: tuple[ClaimReservation, ...]) -> str:
    """Undo that, for a pod that is not bound after all: devices that nobody else uses are free again, and it may get
    others; return why that failed, or nothing."""
    for reservation in claims:
        if reservation.template:
            continue
        namespace, _, name = reservation.claim.partition("/")
        try:
            await _release(client, resource.path(namespace, name), pod, is_ours=reservation.allocation is not None)
        except ApiError as error:
            if error.code != 404:
                return error.message
    return ""


async def deallocate(client: Client, resource: Resource, pod: Pod, key: str) -> str:
    """Free the devices of a claim that is allocated for no other pod; return why that failed, or nothing."""
    path = resource.path(*key.split("/"))
    backoff = Backoff()
    for last in range(MOST_TRIES):
        try:
            claim = msgspec.json.decode(await client.get(path))
            status = claim.get("status") or {}
            others = [found for found in status.get("reservedFor") or () if found["uid"] != pod.metadata.uid]
            if status.get("allocation") and not others:
                await client.request("PUT", f"{path}/status", encode(claim | {"status": {}}))
            return ""
        except ApiError as error:
            if error.code == 404:
                return ""
            if last == MOST_TRIES - 1 or not (error.code == 409 or error.is_passing):
                return error.message
            await asyncio.sleep(backoff.next(error.retry_after))
    return ""


async def _release(client: Client, path: str, pod: Pod, *, is_ours: bool) -> None:
    backoff = Backoff()
    for last in range(MOST_TRIES):
        try:
            claim = msgspec.json.decode(await client.get(path))
            status: dict[str, Any] = claim.get("status") or {}
            consumers = status.get("reservedFor") or []
            others = [found for found in consumers if found["uid"] != pod.metadata.uid]
            if len(others) == len(consumers):
                return
            claim["status"] = status | {"reservedFor": others}
            if is_ours and not others:
                claim["status"] = {}
            await client.request("PUT", f"{path}/status", encode(claim))
            return
        except ApiError as error:
            if last == MOST_TRIES - 1 or not (error.code == 409 or error.is_passing):
                raise
            await asyncio.sleep(backoff.next(error.retry_after))


async def _create(client: Client, resource: Resource, pod: Pod, reservation: ClaimReservation) -> None:
    """Make the claim for extended resources; one that is there already will do, if it is this pod's."""
    namespace, _, name = reservation.claim.partition("/")
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.metadata.name, "uid": pod.metadata.uid, "controller": True}
    metadata = {"name": name, "namespace": namespace, "ownerReferences": [owner], "annotations": {EXTENDED: "true"}}
    claim = {
        "apiVersion": resource.api_version,
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": msgspec.to_builtins(reservation.spec),
    }
    try:
        await client.post(resource.path(namespace), encode(claim))
    except ApiError as error:
        if error.code != 409:
            raise
        found = msgspec.json.decode(await client.get(resource.path(namespace, name)))
        if all(each.get("uid") != pod.metadata.uid for each in found["metadata"].get("ownerReferences", ())):
            raise ClaimRefused(f"claim {reservation.claim} is another pod's") from error


def _claimed(reservation: ClaimReservation) -> dict[str, Any]:
    """What the kubelet reads of the claim for extended resources: which container uses which request."""
    mappings = [
        {"containerName": container, "resourceName": resource, "requestName": request}
        for container, resource, request in reservation.mappings
    ]
    name = reservation.claim.partition("/")[2]
    return {"status": {"extendedResourceClaimStatus": {"resourceClaimName": name, "requestMappings": mappings}}}


async def _reserve(client: Client, resource: Resource, pod: Pod, reservation: ClaimReservation) -> None:
    namespace, _, name = reservation.claim.partition("/")
    path = resource.path(namespace, name)
    backoff = Backoff()
    for last in range(MOST_TRIES):
        try:
            claim = msgspec.json.decode(await client.get(path))
            status: dict[str, Any] = claim.get("status") or {}
            if not status.get("allocation"):
                if reservation.allocation is None:
                    raise ClaimRefused(f"claim {reservation.claim} is not allocated any more")
                if FINALIZER not in claim["metadata"].get("finalizers", ()):
                    claim["metadata"].setdefault("finalizers", []).append(FINALIZER)
                    claim = msgspec.json.decode(await client.request("PUT", path, encode(claim)))
                status["allocation"] = msgspec.to_builtins(reservation.allocation)
            elif reservation.allocation is not None and not _is_same(status["allocation"], reservation):
                raise ClaimRefused(f"claim {reservation.claim} was allocated by somebody else")
            consumers = status.setdefault("reservedFor", [])
            if all(found["uid"] != pod.metadata.uid for found in consumers):
                consumers.append({"resource": "pods", "name": pod.metadata.name, "uid": pod.metadata.uid})
            claim["status"] = status
            await client.request("PUT", f"{path}/status", encode(claim))
            return
        except ApiError as error:
            if last == MOST_TRIES - 1 or not (error.code == 409 or error.is_passing):
                raise
            await asyncio.sleep(backoff.next(error.retry_after))


def _is_same(allocation: Any, reservation: ClaimReservation) -> bool:
    """Whether a claim has the very devices that it was to be given."""

    def devices(found: Any) -> list[tuple[str, str, str]]:
        results = (found.get("devices") or {}).get("results") or ()
        return sorted((each["driver"], each["pool"], each["device"]) for each in results)

    return devices(allocation) == devices(msgspec.to_builtins(reservation.allocation))


async def _is_prepared(client: Client, resource: Resource, reservation: ClaimReservation) -> bool:
    """Whether all devices have what has to be true of them before a pod may start."""
    if reservation.allocation is not None and not any(
        found.get("bindingConditions")
        for found in (msgspec.to_builtins(reservation.allocation).get("devices") or {}).get("results") or ()
    ):
        return True
    namespace, _, name = reservation.claim.partition("/")
    claim = msgspec.json.decode(await client.get(resource.path(namespace, name)))
    status = claim.get("status") or {}
    said = {
        (found["driver"], found["pool"], found["device"]): {
            each["type"]: each["status"] == "True" for each in found.get("conditions") or ()
        }
        for found in status.get("devices") or ()
    }
    for found in ((status.get("allocation") or {}).get("devices") or {}).get("results") or ():
        conditions = said.get((found["driver"], found["pool"], found["device"]), {})
        failed = [name for name in found.get("bindingFailureConditions") or () if conditions.get(name)]
        if failed:
            raise ClaimRefused(f"claim {reservation.claim}: device {found['device']}: {failed[0]}")
        if not all(conditions.get(name) for name in found.get("bindingConditions") or ()):
            return False
    return True
