"""The clients that people have: the official one for Python, and kr8s."""

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from running import Running

from mooring.kubeapi.auth.kubeconfig import write_kubeconfig

kubernetes: Any = pytest.importorskip("kubernetes")


@pytest.fixture
def kubeconfig(server: Running, tmp_path: Path) -> Path:
    path = tmp_path / "kubeconfig"
    write_kubeconfig(path, server.cluster.kubeconfig())
    return path


@pytest.fixture
def core(kubeconfig: Path) -> Iterator[Any]:
    client = kubernetes.config.new_client_from_config(str(kubeconfig))
    yield kubernetes.client.CoreV1Api(client)
    client.close()


def test_the_official_client_creates_patches_watches_and_deletes(core: Any) -> None:
    seen: list[tuple[str, str]] = []
    watch = kubernetes.watch.Watch()

    def follow() -> None:
        for event in watch.stream(core.list_namespaced_config_map, "default", label_selector="suite=official"):
            seen.append((event["type"], event["object"].metadata.name))
            if event["type"] == "DELETED":
                watch.stop()

    reader = threading.Thread(target=follow)
    reader.start()
    metadata = {"name": "official", "labels": {"suite": "official"}}
    created = core.create_namespaced_config_map("default", {"metadata": metadata, "data": {"x": "1"}})
    deadline = time.monotonic() + 30
    while not seen and time.monotonic() < deadline:  # what happens before the watch begins, it does not tell
        time.sleep(0.01)
    patched = core.patch_namespaced_config_map("official", "default", {"data": {"y": "2"}})
    listed = core.list_namespaced_config_map("default", label_selector="suite=official")
    core.delete_namespaced_config_map("official", "default")
    reader.join(30)

    assert created.metadata.uid == patched.metadata.uid
    assert patched.data == {"x": "1", "y": "2"}
    assert [item.metadata.name for item in listed.items] == ["official"]
    assert [type_ for type_, _ in seen] == ["ADDED", "MODIFIED", "DELETED"]


def test_the_official_client_binds_and_evicts_pods(core: Any) -> None:
    container = {"name": "c", "image": "pause"}
    core.create_namespaced_pod("default", {"metadata": {"name": "placed"}, "spec": {"containers": [container]}})
    body = kubernetes.client.V1Binding(
        metadata=kubernetes.client.V1ObjectMeta(name="placed"),
        target=kubernetes.client.V1ObjectReference(kind="Node", name="somewhere"),
    )
    core.create_namespaced_binding("default", body, _preload_content=False)
    bound = core.read_namespaced_pod("placed", "default")
    with pytest.raises(kubernetes.client.ApiException) as refused:
        core.create_namespaced_binding("default", body, _preload_content=False)
    eviction = kubernetes.client.V1Eviction(metadata=kubernetes.client.V1ObjectMeta(name="placed"))
    core.create_namespaced_pod_eviction("placed", "default", eviction)

    assert bound.spec.node_name == "somewhere"
    assert refused.value.status == 409


@pytest.mark.filterwarnings("ignore:Kubernetes version .* is not supported")
def test_kr8s_creates_lists_patches_watches_and_deletes(kubeconfig: Path) -> None:
    import kr8s.asyncio
    from kr8s.asyncio.objects import ConfigMap

    async def use() -> tuple[list[str], dict[str, str], list[str]]:
        api: Any = await kr8s.asyncio.api(kubeconfig=str(kubeconfig))
        found = await ConfigMap(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "kr8s", "namespace": "default", "labels": {"suite": "kr8s"}},
                "data": {"x": "1"},
            },
            api=api,
        )
        await found.create()
        await found.patch({"data": {"y": "2"}})
        names = [each.name async for each in api.get("configmaps", namespace="default", label_selector="suite=kr8s")]
        data = dict(found.data)
        types: list[str] = []
        async for type_, each in api.watch("configmaps", namespace="default", label_selector="suite=kr8s"):
            types.append(type_)
            if type_ == "ADDED":
                await each.delete()
            else:
                break
        return names, data, types

    names, data, types = asyncio.run(use())

    assert names == ["kr8s"]
    assert data == {"x": "1", "y": "2"}
    assert types == ["ADDED", "DELETED"]
