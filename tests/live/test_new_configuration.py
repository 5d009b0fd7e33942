"""A new configuration while pods are being bound: what the old scheduler decided, the new one knows."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from kube import Kube, Object, Refused, node, pod

from mooring.assembly import assemble
from mooring.drivers.live import driver
from mooring.drivers.live.api.client import Client
from mooring.drivers.live.api.connection import connect
from mooring.drivers.live.api.discovery import discover
from mooring.drivers.live.api.dispatcher import Dispatcher
from mooring.drivers.live.driver import Live
from mooring.drivers.live.watching.cache import ObjectCache
from mooring.drivers.live.watching.following import Informers
from mooring.drivers.live.watching.shard import Shard

CLAIM = "/api/v1/namespaces/default/persistentvolumeclaims/data"
SELECTED = "volume.kubernetes.io/selected-node"
MERGE = "application/merge-patch+json"


def storage() -> list[Object]:
    """A claim for which nobody makes a volume but the test."""
    return [
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "slow"},
            "provisioner": "example.com/slow",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": "default"},
            "spec": {
                "storageClassName": "slow",
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        },
    ]


@pytest.fixture
def stored(cluster: Kube) -> Any:
    metadata = {"name": "urgent"}
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    cluster.create({**kind, "metadata": metadata, "value": 9, "preemptionPolicy": "Never"})
    yield cluster
    cluster.call("DELETE", "/api/v1/namespaces/default/pods?gracePeriodSeconds=0")
    for path in (CLAIM, "/api/v1/persistentvolumes/made", "/apis/storage.k8s.io/v1/storageclasses/slow"):
        with suppress(Refused):  # whoever takes finalizers off does not run here
            cluster.call("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)
            cluster.call("DELETE", path)


def make_volume(cluster: Kube) -> None:
    """What a provisioner and the volume controller do."""
    claim = cluster.call("GET", CLAIM)
    of = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "data", "uid": claim["metadata"]["uid"]}
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "slow",
        "claimRef": of,
        "hostPath": {"path": "/tmp/made"},
    }
    cluster.create({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "made"}, "spec": spec})
    bound = {"pv.kubernetes.io/bind-completed": "yes"}
    cluster.call("PATCH", CLAIM, {"metadata": {"annotations": bound}, "spec": {"volumeName": "made"}}, MERGE)
    cluster.call("PATCH", f"{CLAIM}/status", {"status": {"phase": "Bound"}}, MERGE)


async def until(condition: Any, seconds: float = 30.0) -> None:
    deadline = asyncio.get_running_loop().time() + seconds
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, "it did not come about in time"
        await asyncio.sleep(0.1)


def test_a_pod_whose_volumes_take_longer_than_a_change_of_configuration_keeps_its_room(
    stored: Kube, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "SETTLE_SECONDS", 0.5)
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    urgent = pod("urgent", cpu="2", priorityClassName="urgent")

    async def story() -> None:
        async with Client(await connect(stored.kubeconfig), "test") as client:
            mirror, dispatcher = ObjectCache(Shard()), Dispatcher()
            live = Live(assemble().new_scheduler(), mirror, client, dispatcher)
            dispatcher.on_room = live.wake
            following = Informers(client, mirror, live.wake)
            following.follow(await discover(client))
            live.served = following.served
            await following.synced()
            live.begin()
            running = asyncio.ensure_future(live.run())
            try:
                await until(lambda: SELECTED in stored.call("GET", CLAIM)["metadata"].get("annotations", {}))
                stored.create(urgent)
                await until(lambda: stored.events("urgent"))
                await live.replace(assemble().new_scheduler)
                await until(lambda: live.find("default/urgent") is not None)
                assert [key for key, _, _ in live.scheduler.underway()] == ["default/slow"]
                make_volume(stored)
                await until(lambda: stored.pods()["slow"]["spec"].get("nodeName"))
                await until(lambda: not live.scheduler.underway())
                assert "nodeName" not in stored.pods()["urgent"]["spec"]
            finally:
                live.stop()
                await running
                await following.stop()

    stored.create(node("n0", cpu=2))
    stored.create(*storage())
    stored.create(pod("slow", cpu="1", volumes=volumes))
    asyncio.run(story())
